// Package benchmark does the work of `codea1 eval` that needs the sandbox: it makes
// the problems of an evaluation from benchmark files, and runs the suites of its
// groups on mutants and on the other answers of a problem.
//
// It owns the files of problems and of choices in the run directory. It must not know
// a model, the bus, or the figures that follow from its results.
//
// Start reading at problems.go, then suites.go.
package benchmark
