package events

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func samplePredict() (*ProblemPosed, *CodeExecuted) {
	posed := &ProblemPosed{Plan: samplePlan(), Problem: samplePosed().Problem}
	posed.Plan.Suites, posed.Plan.Tests, posed.Problem.Golden = 0, 0, nil
	posed.Problem.Predict = []Prediction{{PredictNext, []string{"2", "'return sum(xs)'"}}, {PredictState, []string{"([], 'list')"}}}
	return posed, &CodeExecuted{
		Plan: posed.Plan, ProblemID: posed.Problem.ID, Predict: []Predicted{PredictNext, PredictState},
		Answers: []ExecutedAnswer{{Loads: true, Golden: []GoldenVerdict{{Verdict: VerdictPass}, {Verdict: VerdictFail}}}, {LoadError: "no line"}},
	}
}

// A predict problem and its verdicts keep their fields on the wire, and their schemas
// describe them.
func TestPredictOnTheWire(t *testing.T) {
	posed, executed := samplePredict()
	for _, p := range []Payload{posed, executed} {
		m, err := Encode(sampleEvent(p))
		if err != nil {
			t.Fatal(err)
		}
		back, err := m.Decode()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, back.Payload); diff != "" {
			t.Errorf("(-sent +received):\n%s", diff)
		}
		agrees(t, p)
		generic, err := m.DecodeAny()
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, m.Type, m.SchemaVersion, generic); err != nil {
			t.Error(err)
		}
	}
}

// A predict problem has bounded lists of literals, and nothing that runs an answer.
func TestPredictIsChecked(t *testing.T) {
	for field, spoil := range map[string]func(*ProblemPosed){
		"problem.predict[0].kind":        func(p *ProblemPosed) { p.Problem.Predict[0].Kind = "later" },
		"problem.predict[1].accepted":    func(p *ProblemPosed) { p.Problem.Predict[1].Accepted = nil },
		"problem.predict[0].accepted[1]": func(p *ProblemPosed) { p.Problem.Predict[0].Accepted[1] = strings.Repeat("1", MaxTextBytes+1) },
		"problem.predict":                func(p *ProblemPosed) { p.Plan.Suites, p.Plan.Tests = 1, 1 },
	} {
		posed, _ := samplePredict()
		spoil(posed)
		if wrong := (*FieldError)(nil); !errors.As(posed.Validate(), &wrong) || wrong.Field != field {
			t.Errorf("%s: %v", field, posed.Validate())
		}
	}
	many, _ := samplePredict()
	many.Problem.Predict = make([]Prediction, MaxPredictions+1)
	golden, _ := samplePredict()
	golden.Problem.Golden = []string{"assert solve([]) == 0"}
	history, _ := samplePredict()
	history.Historical = samplePosed().Historical
	for _, p := range []*ProblemPosed{many, golden, history} {
		if p.Validate() == nil {
			t.Errorf("%d predictions, %d golden and %d historical tests are accepted", len(p.Problem.Predict), len(p.Problem.Golden), len(p.Historical))
		}
	}
	_, executed := samplePredict()
	executed.Answers[0].Golden = executed.Answers[0].Golden[:1]
	if err := executed.Validate(); err == nil || !strings.Contains(err.Error(), "answers[0].golden") {
		t.Errorf("one verdict for two predictions: %v", err)
	}
	_, executed = samplePredict()
	executed.Predict[0] = "later"
	if err := executed.Validate(); err == nil || !strings.Contains(err.Error(), "predict[0]") {
		t.Errorf("an unknown kind: %v", err)
	}
}
