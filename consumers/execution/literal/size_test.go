package literal

import (
	"slices"
	"testing"
)

func TestSizes(t *testing.T) {
	for call, want := range map[string][]int{
		"solve([])": {0}, "solve([7])": {1}, "solve([1, 2])": {2},
		"solve('')": {0}, "solve('é')": {1}, `solve('\n')`: {1}, "solve('ab')": {2}, "solve(b'a')": {1},
		"solve(())": {0}, "solve((1,))": {1}, "solve((1))": nil, // a number in brackets
		"solve({})": {0}, "solve({1: 2})": {1}, "solve({1, 2})": {2}, "solve(set())": {0}, "solve(frozenset({1}))": {1},
		"solve([[1, 2]])": {1}, "solve([[], []])": {2},
		"solve([], 3)": {0}, "solve([1], [1, 2])": {1, 2}, "solve(n=3, xs=[1, 2])": {2}, "pkg.solve([])": {0},
		"solve(3)": nil, "solve()": nil, "solve(None)": nil, // no text and no collection
		"solve([], f(3))": nil, "solve([]": nil, "solve": nil, "": nil, // no literals
	} {
		if got := Sizes(call); !slices.Equal(got, want) {
			t.Errorf("Sizes(%q) is %v, want %v", call, got, want)
		}
	}
}
