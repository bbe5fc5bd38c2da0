package execution

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

func returned(v literal.Value) sandbox.Outcome {
	return sandbox.Outcome{Kind: sandbox.Returned, Value: v}
}

// TestValidate has one statement per row of validate's table.
func TestValidate(t *testing.T) {
	one, two := literal.NewInt(1), literal.NewInt(2)
	statements := []statement{
		{Source: "x = 1", Reason: "not an assert statement"},
		{Source: "raises", Call: "f(0)", stated: one},
		{Source: "loops", Call: "f(1)", stated: one},
		{Source: "generates", Call: "f(2)", stated: one},
		{Source: "nan", Call: "f(3)", stated: literal.Float(math.NaN())},
		{Source: "large", Call: "f(4)", stated: one},
		{Source: "right", Call: "f(5)", stated: literal.Float(1)},
		{Source: "again", Call: "f(5)", stated: two},
		{Source: "wrong", Call: "f(6)", stated: two},
		{Source: "same value, other call", Call: "f(7)", stated: one},
	}
	truth := map[string]sandbox.Outcome{
		"f(0)": {Kind: sandbox.Raised, Detail: "ValueError: no"},
		"f(1)": {Kind: sandbox.TimedOut, Detail: "no result after 1s"},
		"f(2)": {Kind: sandbox.Returned, Detail: "a value of type generator"},
		"f(3)": returned(literal.List{literal.Float(math.NaN())}),
		"f(4)": returned(literal.Str(strings.Repeat("x", maxStatedBytes))),
		"f(5)": returned(one),
		"f(6)": returned(one),
		"f(7)": returned(one),
	}
	const notRun = events.VerdictNotRun
	want := []events.ExecutedTest{
		{Source: "x = 1", Status: events.StatusUnparsable, Detail: "not an assert statement", Verdict: notRun},
		{Source: "raises", Call: "f(0)", Stated: "1", Status: events.StatusRaised, Detail: "ground truth: raised: ValueError: no", Verdict: notRun},
		{Source: "loops", Call: "f(1)", Stated: "1", Status: events.StatusRaised, Detail: "ground truth: timed out: no result after 1s", Verdict: notRun},
		{Source: "generates", Call: "f(2)", Stated: "1", Status: events.StatusRaised, Detail: "ground truth: returned a value of type generator", Verdict: notRun},
		{Source: "nan", Call: "f(3)", Stated: "float('nan')", Status: events.StatusRaised, Detail: "ground truth: returned a value that does not equal itself", Verdict: notRun},
		{Source: "large", Call: "f(4)", Stated: "1", Status: events.StatusRaised, Detail: "ground truth: returned a value over the size limit", Verdict: notRun},
		{Source: "right", Call: "f(5)", Stated: "1.0", Expected: "1", Status: events.StatusKept, Verdict: notRun},
		{Source: "again", Call: "f(5)", Stated: "2", Status: events.StatusDuplicate, Verdict: notRun},
		{Source: "wrong", Call: "f(6)", Stated: "2", Expected: "1", Wrong: true, Status: events.StatusKept, Verdict: notRun},
		{Source: "same value, other call", Call: "f(7)", Stated: "1", Expected: "1", Status: events.StatusKept, Verdict: notRun},
	}
	suite := events.ExecutedSuite{}
	for _, checked := range validate(statements, &truthRun{outcomes: truth}) {
		if kept := checked.Status == events.StatusKept; kept != (checked.want != nil) {
			t.Errorf("%s: kept %t, expectation %v", checked.Source, kept, checked.want)
		}
		suite.Tests = append(suite.Tests, checked.ExecutedTest)
	}
	if diff := cmp.Diff(want, suite.Tests); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if kept, wrong, discarded := suite.Counts(); kept != 3 || wrong != 1 || discarded != 7 {
		t.Errorf("%d kept, %d wrong as stated, %d discarded; want 3, 1 and 7", kept, wrong, discarded)
	}
}

func TestJudge(t *testing.T) {
	one := literal.NewInt(1)
	for _, c := range []struct {
		outcome sandbox.Outcome
		verdict events.Verdict
		detail  string
	}{
		{returned(literal.Float(1)), events.VerdictPass, ""},
		{returned(literal.Bool(true)), events.VerdictPass, ""},
		{returned(literal.Str("1")), events.VerdictFail, "returned '1'"},
		{sandbox.Outcome{Kind: sandbox.Returned, Detail: "a value of type A"}, events.VerdictFail, "returned a value of type A"},
		{sandbox.Outcome{Kind: sandbox.Raised, Detail: "E"}, events.VerdictRaised, "E"},
		{sandbox.Outcome{Kind: sandbox.Crashed, Detail: "gone"}, events.VerdictRaised, "gone"},
		{sandbox.Outcome{Kind: sandbox.TimedOut, Detail: "late"}, events.VerdictTimeout, "late"},
		{sandbox.Outcome{Detail: "not reached"}, events.VerdictNotRun, "not reached"},
	} {
		if verdict, detail := judge(c.outcome, one); verdict != c.verdict || detail != c.detail {
			t.Errorf("%v: got %s %q, want %s %q", c.outcome.Kind, verdict, detail, c.verdict, c.detail)
		}
	}
}
