package events

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// executedWith is a group of one answer and one suite.
func executedWith(tests ...ExecutedTest) *CodeExecuted {
	plan := samplePlan()
	plan.Answers, plan.Suites = 1, 1
	return &CodeExecuted{Plan: plan, ProblemID: "p", Answers: []ExecutedAnswer{{Loads: true, Suites: []ExecutedSuite{{Tests: tests}}}}}
}

// What is left out comes back, whatever a test says, in the way of the quick
// reader and in that of the general one.
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
		raw, err := appendPayload(nil, p)
		if err != nil {
			t.Fatal(err)
		}
		m := messageOf(TypeCodeExecuted, raw)
		quick, _ := readPayload(&m, raw, false)
		thorough, err := m.decodeAnyForm(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []Payload{quick, thorough} {
			if d := cmp.Diff(test, got.(*CodeExecuted).Answers[0].Suites[0].Tests[0]); d != "" {
				t.Fatalf("(-sent +received):\n%s", d)
			}
		}
	})
}

// The usual test says its text once.
func TestUsualTestIsShort(t *testing.T) {
	call, value := strings.Repeat("solve", 20)+"()", strings.Repeat("1", 20)
	test := ExecutedTest{Source: "assert " + call + " == " + value, Status: StatusKept, Call: call, Stated: value, Expected: value, Verdict: VerdictPass}
	raw, err := appendPayload(nil, executedWith(test))
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
	raw, err := appendPayload(nil, executedWith(test))
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

// Version 1 said everything, and what it did not say was empty.
func TestExecutedOfVersion1(t *testing.T) {
	type testV1 struct {
		Source   string     `msgpack:"src"`
		Status   TestStatus `msgpack:"status"`
		Call     string     `msgpack:"call,omitempty"`
		Stated   string     `msgpack:"stated,omitempty"`
		Expected string     `msgpack:"expect,omitempty"`
		Wrong    bool       `msgpack:"wrong,omitempty"`
		Verdict  Verdict    `msgpack:"verdict"`
		Detail   string     `msgpack:"detail,omitempty"`
	}
	tests := []ExecutedTest{
		{Source: "assert f(1) == 1", Status: StatusKept, Call: "f(1)", Stated: "1", Expected: "1", Verdict: VerdictPass},
		{Source: "assert f(1) == 2", Status: StatusKept, Call: "f(1)", Stated: "2", Expected: "1", Wrong: true, Verdict: VerdictFail},
		{Source: "assert f( 3 ) == 3", Status: StatusKept, Call: "f(3)", Stated: "3", Expected: "3", Verdict: VerdictPass},
		{Source: "assert f(0) == 3", Status: StatusRaised, Call: "f(0)", Stated: "3", Verdict: VerdictNotRun, Detail: "ZeroDivisionError"},
		{Source: "f(", Status: StatusUnparsable, Verdict: VerdictNotRun},
	}
	old := []any{}
	for _, test := range tests {
		old = append(old, testV1(test))
	}
	p := executedWith(tests...)
	current, err := marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	m := messageOf(TypeCodeExecuted, current)
	generic, err := m.DecodeAny()
	if err != nil {
		t.Fatal(err)
	}
	suite := generic["answers"].([]any)[0].(map[string]any)["suites"].([]any)[0].(map[string]any)
	suite["tests"] = old
	raw, err := marshal(generic)
	if err != nil {
		t.Fatal(err)
	}
	m = messageOf(TypeCodeExecuted, raw)
	m.SchemaVersion = 1
	e, err := m.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(p, e.Payload, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-sent +received):\n%s", d)
	}
	if e.Hash() != hashOf(raw) {
		t.Error("the hash is not that of the bytes as they were written")
	}
	// A kept test without an expected value is as invalid as it was.
	old[0] = testV1{Source: "assert f(1) == 1", Status: StatusKept, Call: "f(1)", Stated: "1", Verdict: VerdictPass}
	if raw, err = marshal(generic); err != nil {
		t.Fatal(err)
	}
	m.Data = raw
	if p, err := m.Payload(); err == nil {
		t.Errorf("read as %+v", p)
	}
}
