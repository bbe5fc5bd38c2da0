package mistakes_test

import (
	"fmt"

	"codea1/events"
	"codea1/replay/mistakes"
)

func ExampleBook() {
	book := mistakes.New()
	train := events.Plan{Purpose: events.PurposeTrain}
	book.Apply(&events.GroupRewarded{Plan: train, ProblemID: "sort", Deltas: []events.BookDelta{
		{Call: "solve([])", Expected: "[]", Change: 1},
		{Call: "solve([2, 1])", Expected: "[1, 2]", Change: 3},
	}})
	book.Apply(&events.GroupRewarded{Plan: train, ProblemID: "sort", Deltas: []events.BookDelta{
		{Call: "solve([])", Expected: "[]", Change: -1}, // an answer passed the test, and it leaves
		{Call: "solve([1, 1])", Expected: "[1, 1]", Change: 1},
	}})
	for _, test := range book.Top("sort", 8) {
		fmt.Printf("assert %s == %s  # %d\n", test.Call, test.Expected, test.Count)
	}
	// Output:
	// assert solve([2, 1]) == [1, 2]  # 3
	// assert solve([1, 1]) == [1, 1]  # 1
}
