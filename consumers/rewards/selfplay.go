package rewards

import "codea1/events"

// SelfPlay is the reward side of the Self-Play baseline of Code-A1 (arXiv
// 2603.15611): one model writes both answers and tests, and is kept from
// reading an answer when it writes tests for it, since it would collude with
// itself. The model is paid in both roles by the terms of A1: for the tests
// its answers pass, and for valid tests that its answers fail. (The paper's
// repository has no program for the baseline and its page no formula, only this
// setting; that the terms are A1's is our reading of it.)
//
// What differs follows from the tests being written blind. All M x N suites of
// a question answer one prompt, so they are one set: a suite's advantage is
// relative to every suite of its question, not to the N of one answer. And the
// suite did not see whether its answer loads, so a suite whose answer does not
// is left out of that comparison, with advantage 0.
//
// A recipe rewards; it neither ties the two models together nor hides the
// answer from the prompt. Applied to a run of two models it tells what that
// run's rewards would have taught a single blind one.
type SelfPlay struct {
	Alpha float64 // within [0, 1]
}

// Name implements Recipe.
func (SelfPlay) Name() string { return NameSelfPlay }

// Weight implements Recipe.
func (r SelfPlay) Weight() float64 { return r.Alpha }

// TrainsTest implements Recipe.
func (SelfPlay) TrainsTest() bool { return true }

// Rules implements Recipe.
func (SelfPlay) Rules() Rules {
	rules := paperRules
	rules.Compare = CompareQuestion
	return rules
}

// Suite returns R_test of one suite, as A1 does.
func (r SelfPlay) Suite(plan *events.Plan, answer *events.ExecutedAnswer, suite *events.ExecutedSuite) events.SuiteReward {
	return A1(r).Suite(plan, answer, suite)
}

// Answer returns R_code, as A1 does.
func (r SelfPlay) Answer(answer *events.ExecutedAnswer, suites []events.SuiteReward) (float64, error) {
	return A1(r).Answer(answer, suites)
}
