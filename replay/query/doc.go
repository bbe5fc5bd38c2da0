// Package query answers questions about the history of a run: the lineage of a
// group (Explain, Group), the share of a group in an update (Shares), the groups
// that match a predicate (Find), the history of a test of the Mistake Book
// (BookHistory), and the rewards under another recipe (Rescore).
//
// It reads the log through eventlog.Reader and returns values; package command
// prints them. Reward recipes come from outside, as Recipes.
//
// Start reading at lineage.go.
package query
