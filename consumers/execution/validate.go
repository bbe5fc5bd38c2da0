package execution

import (
	"strings"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// validate decides which tests of a suite are kept, from the outcomes of their
// calls on the ground truth.
//
//	statement                                              status      wrong
//	not `assert call == value`                             unparsable
//	the ground truth raises, crashes or runs over time     raised
//	it returns no literal, one too large, or a NaN,        raised
//	  which no answer can equal
//	it returns another value in a second process           raised
//	same call, in any spelling, and true value as an       duplicate
//	  earlier kept test
//	stated value equals the true value                     kept        no
//	stated value differs                                   kept        yes
//
// A kept test always expects the true value. All other tests are discarded. Every
// verdict is not_run at first.
func validate(statements []statement, truth *truthRun) []checkedTest {
	tests := make([]checkedTest, len(statements))
	seen := map[string]bool{}
	for i, st := range statements {
		t := &tests[i]
		t.Source, t.Call, t.Verdict = st.Source, st.Call, events.VerdictNotRun
		if st.Reason != "" {
			t.Status, t.Call, t.Detail = events.StatusUnparsable, "", st.Reason
			continue
		}
		t.Stated = literal.Text(st.stated)
		outcome := truth.outcomes[st.Call]
		if reason := unusable(outcome); reason != "" {
			t.Status, t.Detail = events.StatusRaised, "ground truth: "+reason
			continue
		}
		key := literal.Key(literal.Tuple{literal.Str(truth.spell(&st)), outcome.Value})
		if seen[key] {
			t.Status = events.StatusDuplicate
			continue
		}
		seen[key] = true
		t.Status = events.StatusKept
		t.Expected = literal.Text(outcome.Value)
		t.Wrong = !literal.Equal(st.stated, outcome.Value)
		t.want = outcome.Value
	}
	return tests
}

// checkedTest is a test with the value it expects, nil unless it was kept.
type checkedTest struct {
	events.ExecutedTest
	want literal.Value
}

// unusable says why a ground truth's outcome cannot be an expectation.
func unusable(o sandbox.Outcome) string {
	switch {
	case o.Kind != sandbox.Returned:
		return o.Kind.String() + ": " + o.Detail
	case o.Value == nil:
		return "returned " + o.Detail
	case !literal.SelfEqual(o.Value):
		return "returned a value that does not equal itself"
	case len(literal.Text(o.Value)) > maxStatedBytes:
		return "returned a value over the size limit"
	case strings.Contains(literal.Text(o.Value), " at 0x"):
		return "returned a text with the address of an object"
	}
	return ""
}

// judge returns the verdict of an outcome, given the expected value.
func judge(o sandbox.Outcome, want literal.Value) (verdict events.Verdict, detail string) {
	return judgeClose(o, want, 0)
}

// judgeClose is judge with a tolerance.
func judgeClose(o sandbox.Outcome, want literal.Value, atol float64) (verdict events.Verdict, detail string) {
	switch {
	case o.Kind == sandbox.NotRun:
		return events.VerdictNotRun, o.Detail
	case o.Kind == sandbox.TimedOut:
		return events.VerdictTimeout, o.Detail
	case o.Kind == sandbox.Raised || o.Kind == sandbox.Crashed:
		return events.VerdictRaised, o.Detail
	case o.Value == nil:
		return events.VerdictFail, "returned " + o.Detail
	case literal.Close(o.Value, want, atol):
		return events.VerdictPass, ""
	}
	return events.VerdictFail, "returned " + sandbox.Clip(literal.Text(o.Value))
}
