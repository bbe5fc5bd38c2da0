// Package probes makes the probes of a ground truth: programs or places by which tests
// are told apart. Mutants are programs with one change each; the changes are those of
// Cosmic Ray 8, the operators that take no arguments. Branches are the ways that a program
// can go; they are marked in its text. Traces are the steps of a call, for predict problems.
//
// It reads programs. It must not know which tests run on them, or the reward of a test.
//
// Start reading at mutants.go and mutants.py, then branches.go and branches.py,
// trace.go and trace.py.
package probes
