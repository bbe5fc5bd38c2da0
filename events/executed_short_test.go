package events

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"
)

// executedWith is a group of one answer and one suite.
func executedWith(tests ...ExecutedTest) *CodeExecuted {
	plan := samplePlan()
	plan.Answers, plan.Suites = 1, 1
	return &CodeExecuted{Plan: plan, ProblemID: "p", Answers: []ExecutedAnswer{{Loads: true, Suites: []ExecutedSuite{{Tests: tests}}}}}
}

// Reading restores the parts that are left out, by fields and by tags.
func TestShortTests(t *testing.T) {
	text := rapid.SampledFrom([]string{"", "f(1)", "1", " == ", "f(1) == 1", "assert ", "==", "é"})
	rapid.Check(t, func(t *rapid.T) {
		test := ExecutedTest{
			Status: rapid.SampledFrom(statuses).Draw(t, "status"), Call: text.Draw(t, "call"), Stated: text.Draw(t, "stated"),
			Expected: text.Draw(t, "expected"), Wrong: rapid.Bool().Draw(t, "wrong"), Verdict: VerdictPass, Detail: text.Draw(t, "detail"),
		}
		test.Source = rapid.SampledFrom([]string{
			"assert " + test.Call + " == " + test.Stated, test.Call + " == " + test.Stated, "assert " + test.Call + "==" + test.Stated, "assert " + test.Call, "",
		}).Draw(t, "source")
		p := executedWith(test)
		agrees(t, p)
		raw, err := marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var byFields, byTags CodeExecuted
		if err := errors.Join(unmarshal(raw, &byFields, false), msgpack.Unmarshal(raw, &byTags)); err != nil {
			t.Fatal(err)
		}
		for _, got := range []CodeExecuted{byFields, byTags} {
			if d := cmp.Diff(test, got.Answers[0].Suites[0].Tests[0]); d != "" {
				t.Fatalf("(-sent +received):\n%s", d)
			}
		}
	})
}

// The usual test contains its value once.
func TestUsualTestIsShort(t *testing.T) {
	call, value := strings.Repeat("solve", 20)+"()", strings.Repeat("1", 20)
	test := ExecutedTest{Source: "assert " + call + " == " + value, Status: StatusKept, Call: call, Stated: value, Expected: value, Verdict: VerdictPass}
	raw, err := marshal(executedWith(test))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(raw, []byte(value)); n != 1 {
		t.Errorf("the value is written %d times: %q", n, raw)
	}
}

// A split that does not fit is malformed.
func TestSplitThatDoesNotFit(t *testing.T) {
	test := ExecutedTest{Source: "assert f(1) == 1", Status: StatusKept, Call: "f(1)", Stated: "1", Expected: "1", Verdict: VerdictPass}
	raw, err := marshal(executedWith(test))
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(raw, []byte("\xa5split")) + len("\xa5split")
	for _, split := range []byte{0, 3, 5, 9, 100, 0xff} { // the last is -1
		raw[at] = split
		m := messageOf(TypeCodeExecuted, raw)
		if p, err := m.Payload(); err == nil {
			t.Errorf("split %d: %+v", split, p)
		}
	}
}
