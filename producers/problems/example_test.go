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
	fmt.Println(tests > 2000)
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
