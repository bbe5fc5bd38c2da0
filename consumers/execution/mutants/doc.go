// Package mutants measures tests by the mutants of a ground truth: programs with one
// change each. The changes are those of Cosmic Ray 8, the operators that take no
// arguments.
//
// It owns the changes and the rule by which tests kill a mutant. It must not know
// which model wrote the tests.
//
// Start reading at mutants.go, then mutants.py.
package mutants
