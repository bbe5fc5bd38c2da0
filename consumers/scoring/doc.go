// Package scoring turns the answers and suites of an evaluation into figures: it grades
// given answers, reads the groups of a run that sampled, and prints the tables of
// `codea1 eval`.
//
// It owns the flags of eval, and the results, samples and tests files of an evaluation. It must not know a
// model or the bus.
//
// Start reading at scoring.go, then files.go.
package scoring
