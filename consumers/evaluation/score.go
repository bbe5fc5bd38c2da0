package evaluation

import (
	"errors"

	"codea1/events"
)

// ErrAllMasked is returned for a group without an answer to score: all were lost
// to infrastructure failures.
var ErrAllMasked = errors.New("every answer is masked by an infrastructure failure")

// Score returns the scores of one held-out group. It is pure.
//
// Code LLM: a sampled answer is correct if it loads and passes every golden
// test. Given answers are not the Code LLM's and are not scored.
//
// Test LLM, over all suites of the group:
//
//   - Stated counts the tests written, Wanted the tests asked for.
//   - Right counts the tests that are kept and right as stated. A test that is
//     kept but wrong as stated does not count.
//   - Defective counts the suites on an answer that loads and fails a golden
//     test. An answer that does not load needs no test to show its defect.
//   - Found counts the defective suites with a failing test that is right as
//     stated. A test with a wrong value also fails on a correct program, so it
//     shows nothing.
//   - Inputs.Kept counts the kept tests, right or wrong as stated, and
//     Inputs.Trivial those of them with an empty or one-element input, which
//     trivial reports for a call.
//   - Inputs.Reached counts the defective suites with a failing kept test. Its
//     input exposes the defect once the true value is known.
//
// Answers and suites that were lost to infrastructure failures count nowhere.
func Score(group *events.CodeExecuted, trivial func(call string) bool) (*events.EvalScored, error) {
	out := &events.EvalScored{
		Plan: group.Plan, ProblemID: group.ProblemID,
		CodeVersion: group.CodeVersion, TestVersion: group.TestVersion,
	}
	masked := 0
	for m := range group.Answers {
		answer := &group.Answers[m]
		if answer.Failure != "" {
			masked++
			continue
		}
		if answer.Loads && len(answer.Golden) == 0 {
			return nil, ErrNoGolden
		}
		if !group.Given {
			out.Correct = append(out.Correct, correct(answer))
		}
		for n := range answer.Suites {
			addSuite(out, answer, &answer.Suites[n], trivial)
		}
	}
	if masked == len(group.Answers) {
		return nil, ErrAllMasked
	}
	return out, nil
}

func addSuite(out *events.EvalScored, answer *events.ExecutedAnswer, suite *events.ExecutedSuite, trivial func(call string) bool) {
	if suite.Failure != "" {
		return
	}
	if out.Inputs == nil {
		out.Inputs = new(events.InputCounts)
	}
	found, reached := false, false
	for i := range suite.Tests {
		t := &suite.Tests[i]
		if t.Status != events.StatusKept {
			continue
		}
		out.Inputs.Kept++
		if trivial(t.Call) {
			out.Inputs.Trivial++
		}
		reached = reached || t.Verdict.Failed()
		if !t.Wrong {
			out.Right++
			found = found || t.Verdict.Failed()
		}
	}
	out.Suites++
	out.Wanted += out.Plan.Tests
	out.Stated += len(suite.Tests)
	if defective(answer) {
		out.Defective++
		if found {
			out.Found++
		}
		if reached {
			out.Inputs.Reached++
		}
	}
}

func correct(a *events.ExecutedAnswer) bool {
	for i := range a.Golden {
		if a.Golden[i].Verdict != events.VerdictPass {
			return false
		}
	}
	return a.Loads
}

// defective reports whether the answer loads and fails a golden test. With a
// golden test that has no verdict, an answer is neither correct nor defective
// unless another one fails.
func defective(a *events.ExecutedAnswer) bool {
	for i := range a.Golden {
		if a.Golden[i].Verdict.Failed() {
			return a.Loads
		}
	}
	return false
}
