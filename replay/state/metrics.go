package state

import (
	"encoding/json"
	"math"

	"codea1/events"
)

// Metrics holds the figures of a run.
type Metrics struct {
	Events      map[events.Type]uint64 `json:"events"`      // number of events, by type
	Steps       map[int]*Step          `json:"steps"`       // by training step
	Evaluations map[string]*Evaluation `json:"evaluations"` // by tag
}

// Step holds the figures of one training step.
type Step struct {
	Posed    int    `json:"posed"` // groups
	Rewarded int    `json:"rewarded"`
	Dropped  int    `json:"dropped"`
	Code     Reward `json:"code"`   // rewards of the answers
	Test     Reward `json:"test"`   // rewards of the suites
	Loads    int    `json:"loads"`  // rewarded answers that load
	Passed   Mean   `json:"passed"` // share of its suite's tests that an answer passes
	Kept     int    `json:"kept"`   // kept tests
	// WrongOrDiscarded counts tests that are discarded or wrong as stated. The
	// latter are kept tests too.
	WrongOrDiscarded int `json:"wrong_or_discarded"`
	// Entered and Left count tests of the Mistake Book. Rose and Fell are sums
	// of the changes of their frequencies.
	Entered int `json:"entered"`
	Left    int `json:"left"`
	Rose    int `json:"rose"`
	Fell    int `json:"fell"`
	// CodeUpdate and TestUpdate are zero until the version exists.
	CodeUpdate Update `json:"code_update"`
	TestUpdate Update `json:"test_update"`
}

// Reward is the mean reward of the completions of one model.
type Reward struct {
	Mean
	Masked int `json:"masked"` // completions without a reward because of an infrastructure failure
}

// Mean is the sum of N numbers, added in the order of the log.
type Mean struct {
	N   int     `json:"n"`
	Sum Measure `json:"sum"`
}

// Value returns the mean, or 0 if N is 0.
func (m *Mean) Value() float64 {
	if m.N == 0 {
		return 0
	}
	return float64(m.Sum) / float64(m.N)
}

// Measure is a measured number. JSON has no NaN and no infinities: they become
// null, and null becomes NaN.
type Measure float64

// MarshalJSON implements json.Marshaler.
func (x Measure) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(x))
}

// UnmarshalJSON implements json.Unmarshaler.
func (x *Measure) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		*x = Measure(math.NaN())
		return nil
	}
	return json.Unmarshal(raw, (*float64)(x))
}

func (m *Mean) add(x float64) { m.N, m.Sum = m.N+1, m.Sum+Measure(x) }

// Update describes the training of a policy version.
type Update struct {
	Version   int     `json:"version"`
	Groups    int     `json:"groups"`
	Sequences int     `json:"sequences"`
	Tokens    int     `json:"tokens"`
	Loss      Measure `json:"loss"`
	KL        Measure `json:"kl"`
	Entropy   Measure `json:"entropy"`
	GradNorm  Measure `json:"grad_norm"`
	Seconds   Measure `json:"seconds"`
}

// Evaluation holds the figures of one evaluation.
type Evaluation struct {
	Posed     int `json:"posed"` // groups
	Scored    int `json:"scored"`
	Dropped   int `json:"dropped"`
	Answers   int `json:"answers"`
	Correct   int `json:"correct"`
	Suites    int `json:"suites"`
	Wanted    int `json:"wanted"`    // tests wanted: suites x K
	Stated    int `json:"stated"`    // tests written
	Right     int `json:"right"`     // kept tests that are right as stated
	Defective int `json:"defective"` // suites for an answer that fails a golden test
	Found     int `json:"found"`     // defective suites with a right test that the answer fails
	// The next figures are of groups with counted inputs.
	Kept     int `json:"kept"`     // kept tests, right or wrong as stated
	Trivial  int `json:"trivial"`  // kept tests with an empty or one-element input
	Searched int `json:"searched"` // defective suites
	Reached  int `json:"reached"`  // defective suites with a kept test that the answer fails
}

func newMetrics() Metrics {
	return Metrics{Events: make(map[events.Type]uint64), Steps: make(map[int]*Step), Evaluations: make(map[string]*Evaluation)}
}

func (m *Metrics) step(step int) *Step {
	if m.Steps[step] == nil {
		m.Steps[step] = new(Step)
	}
	return m.Steps[step]
}

func (m *Metrics) evaluation(tag string) *Evaluation {
	if m.Evaluations[tag] == nil {
		m.Evaluations[tag] = new(Evaluation)
	}
	return m.Evaluations[tag]
}

func (m *Metrics) apply(e *Event) {
	m.Events[e.Type]++
	switch e.Type {
	case events.TypeProblemPosed, events.TypeGroupDropped:
		m.count(e)
	}
	switch p := e.Payload.(type) {
	case *events.GroupRewarded:
		if step, ok := TrainingStep(e.Group); ok {
			m.step(step).reward(e, p)
		}
	case *events.EvalScored:
		if tag, ok := evaluationTag(e.Group); ok {
			m.evaluation(tag).score(p)
		}
	case *events.PolicyUpdated:
		update := Update{
			Version: p.Version, Groups: len(p.Groups), Sequences: p.Metrics.Sequences, Tokens: p.Metrics.Tokens, Loss: Measure(p.Metrics.Loss),
			KL: Measure(p.Metrics.KL), Entropy: Measure(p.Metrics.Entropy), GradNorm: Measure(p.Metrics.GradNorm), Seconds: Measure(p.Metrics.Seconds),
		}
		if p.Role == events.RoleCode {
			m.step(p.Step).CodeUpdate = update
		} else {
			m.step(p.Step).TestUpdate = update
		}
	}
}

// count counts a posed or dropped group.
func (m *Metrics) count(e *Event) {
	if step, ok := TrainingStep(e.Group); ok {
		s := m.step(step)
		if e.Type == events.TypeProblemPosed {
			s.Posed++
		} else {
			s.Dropped++
		}
	} else if tag, ok := evaluationTag(e.Group); ok {
		x := m.evaluation(tag)
		if e.Type == events.TypeProblemPosed {
			x.Posed++
		} else {
			x.Dropped++
		}
	}
}

func (s *Step) reward(e *Event, r *events.GroupRewarded) {
	s.Rewarded++
	for i := range r.Code {
		a := &r.Code[i]
		if a.Masked {
			s.Code.Masked++
			continue
		}
		s.Code.add(a.Reward)
		if a.Loads {
			s.Loads++
		}
	}
	for i := range r.Test {
		for j := range r.Test[i] {
			t := &r.Test[i][j]
			if t.Masked {
				s.Test.Masked++
				continue
			}
			s.Test.add(t.Reward)
			s.Passed.add(t.PassNew)
			s.Kept += t.Valid
			s.WrongOrDiscarded += t.Invalid
		}
	}
	for _, c := range e.Changes {
		switch {
		case c.Before == 0:
			s.Entered++
		case c.Count == 0:
			s.Left++
		}
		if c.Count > c.Before {
			s.Rose += c.Count - c.Before
		} else {
			s.Fell += c.Before - c.Count
		}
	}
}

func (x *Evaluation) score(p *events.EvalScored) {
	x.Scored++
	x.Answers += len(p.Correct)
	for _, correct := range p.Correct {
		if correct {
			x.Correct++
		}
	}
	x.Suites += p.Suites
	x.Wanted += p.Wanted
	x.Stated += p.Stated
	x.Right += p.Right
	x.Defective += p.Defective
	x.Found += p.Found
	if p.Inputs != nil {
		x.Kept += p.Inputs.Kept
		x.Trivial += p.Inputs.Trivial
		x.Searched += p.Defective
		x.Reached += p.Inputs.Reached
	}
}
