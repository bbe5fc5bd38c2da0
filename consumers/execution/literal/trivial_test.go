package literal

import "testing"

func TestTrivialInput(t *testing.T) {
	for call, want := range map[string]bool{
		"solve([])": true, "solve([7])": true, "solve([1, 2])": false,
		"solve('')": true, "solve('a')": false, "solve('ab')": false, "solve(b'')": true, "solve(b'a')": false,
		"solve(())": true, "solve((1,))": true, "solve((1, 2))": false, "solve((1))": false, // a number in brackets
		"solve({})": true, "solve({1: 2})": true, "solve({1: 2, 3: 4})": false, "solve({1, 2})": false,
		"solve(set())": true, "solve(frozenset({1}))": true, "solve(frozenset({1, 2}))": false,
		"solve([[1, 2]])": true, "solve([[], []])": false,
		"solve([], 3)": true, "solve([1], '')": true, "solve([1], 'a')": false, "solve([1], [1, 2])": false,
		"solve(xs=[1])": true, "solve(n=3, xs=[1, 2])": false, "pkg.solve([])": true,
		"solve(3)": false, "solve()": false, "solve(None)": false, // no text and no collection
		"solve([], f(3))": false, "solve([]": false, "solve": false, "": false, // no literals
	} {
		if got := TrivialInput(call); got != want {
			t.Errorf("TrivialInput(%q) is %v, want %v", call, got, want)
		}
	}
}
