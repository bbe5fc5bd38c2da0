package execution

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
)

// predictGroup is a group of a predict problem with one answer per text.
func predictGroup(predict []events.Prediction, answers ...string) *events.TestsSampled {
	return &events.TestsSampled{
		Posed: events.ProblemPosed{
			Plan:    events.Plan{Purpose: events.PurposeTrain, Step: 1, Groups: 1, Answers: len(answers), Temperature: 1},
			Problem: events.Problem{ID: "p", Question: "Which value?", EntryPoint: "f", Solution: "def f(x): return x", Predict: predict},
		},
		Codes: answers, Prompts: make([]events.Int32s, len(answers)), Suites: make([][]events.Completion, len(answers)),
	}
}

// The lines of an answer are compared as literals. There is no sandbox, so that nothing of
// an answer can run.
func TestPredictions(t *testing.T) {
	predict := []events.Prediction{
		{Kind: events.PredictOutput, Accepted: []string{"[1, 'a']"}},
		{Kind: events.PredictNext, Accepted: []string{"7", "'return x'"}},
		{Kind: events.PredictState, Accepted: []string{"({'b': 2}, 'dict')"}},
	}
	answers := map[string]string{
		"[1, 'a']\n7\n({'b': 2}, 'dict')":                       "ppp",
		"\n  [1,\"a\"]  \n\n\"return x\"\n({'b':2},'dict')\n":   "ppp",
		"[1.0, 'a']\n7\n({'b': 2}, 'Dict')":                     "ppf",
		"[1, 'a']\n8":                                           "pff",
		"7\n[1, 'a']\n({'b': 2}, 'dict')":                       "ffp",
		"":                                                      "does not load",
		"[1, 'a']\n7\n({'b': 2}, 'dict')\n8":                    "does not load", // a fourth guess
		"assert True\nassert f(1) == f(1)\nTrue":                "fff",
		"f(1)\n3 + 4\n({'b': 1 + 1}, 'dict')":                   "fff",
		"__import__('os')._exit(0)\nnan\n(lambda: 7)()":         "fff",
		"[1, 'a'] # or\n7 or 8\n({'b': 2}, 'dict') if 1 else 2": "fff",
	}
	var texts []string
	for text := range answers {
		texts = append(texts, text)
	}
	in := predictGroup(predict, texts...)
	if err := in.Validate(); err != nil {
		t.Fatal(err)
	}
	out, err := (&Executor{}).Execute(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Validate(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]events.Predicted{events.PredictOutput, events.PredictNext, events.PredictState}, out.Predict); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	for i, text := range texts {
		got := ""
		for _, v := range out.Answers[i].Golden {
			got += string(v.Verdict[0])
		}
		if a := &out.Answers[i]; !a.Loads {
			got = "does not load"
		}
		if got != answers[text] {
			t.Errorf("%q: %s, want %s; %+v", text, got, answers[text], out.Answers[i])
		}
	}
	for _, wrong := range []string{"f(1)", "float('nan')", ""} {
		if _, err := (&Executor{}).Execute(t.Context(), predictGroup([]events.Prediction{{Kind: events.PredictOutput, Accepted: []string{"1", wrong}}}, "1")); !errors.Is(err, ErrGroundTruth) || !strings.Contains(err.Error(), "prediction 1") {
			t.Errorf("%q as an accepted literal: %v", wrong, err)
		}
	}
}

// A hostile literal is refused, and neither its text nor its value is kept.
func TestHostilePredictions(t *testing.T) {
	p, err := ReadPredictions([]events.Prediction{{Kind: events.PredictOutput, Accepted: []string{"7"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"deep":        strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		"deep tuples": strings.Repeat("(", 50_000) + "7" + strings.Repeat(",)", 50_000),
		"huge number": strings.Repeat("9", 200_000),
		"hexadecimal": "0x" + strings.Repeat("f", 200_000),
		"exponent":    "1e999999999",
		"many lines":  strings.Repeat("7\n", 100_000),
		"many sets":   "{" + strings.Repeat("(7, 8, frozenset({1, 2})), ", 9_000) + "}",
		"long text":   "'" + strings.Repeat("x", 250_000) + "'",
		"10 MB":       strings.Repeat("7, ", 10<<20/3),
		"open text":   "'" + strings.Repeat(`\`, 99_999),
	} {
		began := time.Now()
		a := p.Grade(text)
		if a.Loads && a.Golden[0].Verdict != events.VerdictFail {
			t.Errorf("%s: %+v", name, a)
		}
		if kept := len(fmt.Sprint(a)); kept > 4<<10 {
			t.Errorf("%s: %d bytes of the answer are kept", name, kept)
		}
		t.Logf("%s: %v", name, time.Since(began)) // never a condition: the machine may be busy
	}
}
