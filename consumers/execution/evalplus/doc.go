// Package evalplus reads EvalPlus's release files of HumanEval+ and MBPP+ and
// files of samples in EvalPlus's format, and makes golden tests of them.
//
// It owns the formats, and the rules by which EvalPlus compares a value with that
// of the ground truth. It must not know how a test runs: that is package
// execution.
//
// A release file has inputs and a ground truth, but no expected values. Problem
// runs the ground truth on the inputs and writes a golden test per input: the base
// inputs first, then the plus inputs. A value that is too large for a test is
// computed again by the ground truth each time that the test runs.
//
// Start reading at file.go, then tests.go.
package evalplus
