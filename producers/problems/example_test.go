package problems_test

import (
	"context"
	"fmt"
	"strings"

	"codea1/producers/problems"
)

// A set is read one problem at a time, whatever its format.
func ExampleLoad() {
	tests := 0
	for p, err := range problems.Load(context.Background(), problems.BuiltinHeldOut, problems.LoadOptions{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		tests += len(p.Tests)
		if p.ID == "heldout-0001" {
			fmt.Println(p.Question)
			fmt.Println(p.Solution)
		}
	}
	fmt.Println(tests, "golden tests")
	// Output:
	// Compute the sorted different values among the distances from 2 to the numbers at odd indexes of xs.
	// def solve(xs):
	//     return sorted(set(abs(x - 2) for x in xs[1::2]))
	// 3346 golden tests
}

// Training text is made row by row; every row is about a training problem.
func ExampleCorpus() {
	rows, err := problems.Corpus("test", 1, 1, problems.DefaultMix())
	if err != nil {
		fmt.Println(err)
		return
	}
	for row := range rows {
		fmt.Println(strings.Count(row.Response, "assert"), "asserts")
	}
	// Output: 3 asserts
}
