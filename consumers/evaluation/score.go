package evaluation

import (
	"errors"

	"codea1/events"
)

// ErrAllMasked is returned for a group whose every answer was lost to
// infrastructure failures: there is nothing to score.
var ErrAllMasked = errors.New("every answer is masked by an infrastructure failure")

// Score says how one held-out group went. It is pure.
//
// Code LLM: an answer that was sampled is correct when it loads and passes
// every golden test. Given answers are not the Code LLM's and are not scored.
//
// Test LLM, over all suites of the group:
//
//   - Stated counts the tests written, Wanted what was asked for.
//   - Valid counts the tests that were kept and stated the ground truth's
//     value; a kept test whose value had to be corrected is not valid.
//   - Defective counts the suites on an answer that loads and fails a golden
//     test. An answer that does not load needs no test to be found out.
//   - Found counts those of the defective in which at least one valid test
//     fails. A test with a wrong value fails on any program and proves nothing.
//
// What was lost to infrastructure failures is left out of every count.
func Score(group *events.CodeExecuted) (*events.EvalScored, error) {
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
			addSuite(out, answer, &answer.Suites[n])
		}
	}
	if masked == len(group.Answers) {
		return nil, ErrAllMasked
	}
	return out, nil
}

func addSuite(out *events.EvalScored, answer *events.ExecutedAnswer, suite *events.ExecutedSuite) {
	if suite.Failure != "" {
		return
	}
	found := false
	for i := range suite.Tests {
		t := &suite.Tests[i]
		if t.Status == events.StatusKept && !t.Wrong {
			out.Valid++
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

// defective asks for a failure that was seen: a golden test without a verdict
// makes an answer neither correct nor defective.
func defective(a *events.ExecutedAnswer) bool {
	for i := range a.Golden {
		if a.Golden[i].Verdict.Failed() {
			return a.Loads
		}
	}
	return false
}
