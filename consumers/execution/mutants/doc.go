// Package mutants measures tests by the mutants of a ground truth (package probes).
//
// It owns the rule by which tests kill a mutant. It must not know which model wrote the
// tests.
//
// Start reading at mutants.go.
package mutants
