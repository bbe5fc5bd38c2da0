// Package probes makes the probes of a ground truth: programs or places by which tests
// are told apart. Mutants are programs with one change each; the changes are those of
// Cosmic Ray 8, the operators that take no arguments.
//
// It reads programs. It must not know which tests run on them, or what a test earns.
//
// Start reading at mutants.go, then mutants.py.
package probes
