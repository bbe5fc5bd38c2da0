package problems_test

import (
	"context"
	"fmt"
	"strings"

	"codea1/producers/problems"
)

// Load reads a set of any format one problem at a time.
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

// Every row of a corpus is about a training problem.
func ExampleCorpus_Each() {
	corpus := problems.Corpus{Role: "test", Rows: 1, Seed: 1, Python: "python3", Mix: problems.Mix{Asserts: 3}}
	err := corpus.Each(context.Background(), func(row problems.Row) error {
		fmt.Println(strings.Count(row.Response, "assert"), "asserts")
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 3 asserts
}
