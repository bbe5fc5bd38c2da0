// Package execution executes groups: it runs the tests of Test LLM responses on
// the ground truth and on the answers, and returns verdicts.
//
// It owns the reading of test suites, the decision which tests are kept, golden
// tests, and the execution stage. It must not know how a program is run or
// isolated: that is package sandbox. It must not know the reward of a verdict:
// that is package rewards.
//
// The rules that keep a test honest:
//
//   - An expectation stays in this process. A candidate receives calls; the
//     values that it returns are compared here, with Python's equality (package
//     literal).
//   - A generated test computes its arguments and its stated value apart from any
//     program, with built-in functions and methods of literals only. All programs
//     get the same arguments, and no test reaches into a program.
//   - A test that is more than calls and values, a script, runs in a process of
//     its own that never holds the program. Its calls are made for it (apart.go).
//   - A failure of the sandbox is a *sandbox.Error: retried, and never a verdict.
//
// Start reading at group.go (a group of answers and suites). suite.go reads
// suites, validate.go decides which tests are kept, golden.go runs the tests of
// a problem, apart.go runs test scripts, and handler.go is the stage. TESTS.md
// has the rules with examples that a test runs.
//
// Package sandboxfusion runs programs on another machine, and package grading is
// the command `sandbox grade`.
package execution
