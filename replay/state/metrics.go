package state

import (
	"encoding/json"
	"maps"
	"math"
	"slices"

	"codea1/events"
)

// Metrics is what a run has come to, step by step.
type Metrics struct {
	Events      map[events.Type]uint64 `json:"events"`      // how many there are
	Steps       map[int]*Step          `json:"steps"`       // by training step
	Evaluations map[string]*Evaluation `json:"evaluations"` // by tag
}

// Step is what one training step has come to.
type Step struct {
	Posed    int    `json:"posed"` // groups
	Rewarded int    `json:"rewarded"`
	Dropped  int    `json:"dropped"`
	Code     Reward `json:"code"`   // of answers
	Test     Reward `json:"test"`   // of suites
	Loads    int    `json:"loads"`  // answers, of those rewarded, that load
	Passed   Mean   `json:"passed"` // share of its suite's tests that an answer passes
	Kept     int    `json:"kept"`   // tests
	// Tests that are wrong as stated, which are also kept, or discarded.
	WrongOrDiscarded int `json:"wrong_or_discarded"`
	// Of the Mistake Book: tests that entered and left, and by how much the
	// frequencies of tests rose and fell.
	Entered int `json:"entered"`
	Left    int `json:"left"`
	Rose    int `json:"rose"`
	Fell    int `json:"fell"`
	// What the updates say; zero until the version is there.
	CodeUpdate Update `json:"code_update"`
	TestUpdate Update `json:"test_update"`
}

// Reward is a mean reward of one model's responses.
type Reward struct {
	Mean
	Masked int `json:"masked"` // responses lost to the infrastructure
}

// Mean is a sum of so many numbers, added up in the order of the log.
type Mean struct {
	N   int     `json:"n"`
	Sum Measure `json:"sum"`
}

// Value returns the mean; 0 of nothing.
func (m *Mean) Value() float64 {
	if m.N == 0 {
		return 0
	}
	return float64(m.Sum) / float64(m.N)
}

// Measure is a measured number. What is no number in JSON becomes null.
type Measure float64

// MarshalJSON implements json.Marshaler.
func (x Measure) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(x))
}

func (m *Mean) add(x float64) { m.N, m.Sum = m.N+1, m.Sum+Measure(x) }

// Update is what made a policy version.
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

// Evaluation is what one evaluation has come to.
type Evaluation struct {
	Posed     int `json:"posed"` // groups
	Scored    int `json:"scored"`
	Dropped   int `json:"dropped"`
	Answers   int `json:"answers"`
	Correct   int `json:"correct"`
	Suites    int `json:"suites"`
	Wanted    int `json:"wanted"` // tests
	Stated    int `json:"stated"`
	Right     int `json:"right"`     // tests kept and right as stated
	Defective int `json:"defective"` // suites
	Found     int `json:"found"`
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

// count counts a group that is posed or dropped.
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
}

func (m *Metrics) encode(e *encoder) {
	e.numbers(len(m.Events))
	for _, t := range slices.Sorted(maps.Keys(m.Events)) {
		e.text(string(t))
		e.numbers(int(m.Events[t]))
	}
	e.numbers(len(m.Steps))
	for _, step := range slices.Sorted(maps.Keys(m.Steps)) {
		e.numbers(step)
		counts, measures := m.Steps[step].fields()
		for _, n := range counts {
			e.numbers(*n)
		}
		for _, x := range measures {
			e.measure(*x)
		}
	}
	e.numbers(len(m.Evaluations))
	for _, tag := range slices.Sorted(maps.Keys(m.Evaluations)) {
		e.text(tag)
		for _, n := range m.Evaluations[tag].fields() {
			e.numbers(*n)
		}
	}
}

func (m *Metrics) decode(d *decoder) {
	for range d.count() {
		t := events.Type(d.text())
		m.Events[t] = uint64(d.number())
	}
	for range d.count() {
		counts, measures := m.step(d.number()).fields()
		d.numbers(counts...)
		for _, x := range measures {
			*x = d.measure()
		}
	}
	for range d.count() {
		d.numbers(m.evaluation(d.text()).fields()...)
	}
}

// fields returns everything a step holds, in the order of its encoding.
func (s *Step) fields() (counts []*int, measures []*Measure) {
	counts = []*int{
		&s.Posed, &s.Rewarded, &s.Dropped, &s.Code.N, &s.Code.Masked, &s.Test.N, &s.Test.Masked, &s.Loads, &s.Passed.N, &s.Kept, &s.WrongOrDiscarded,
		&s.Entered, &s.Left, &s.Rose, &s.Fell,
	}
	measures = []*Measure{&s.Code.Sum, &s.Test.Sum, &s.Passed.Sum}
	for _, u := range []*Update{&s.CodeUpdate, &s.TestUpdate} {
		counts = append(counts, &u.Version, &u.Groups, &u.Sequences, &u.Tokens)
		measures = append(measures, &u.Loss, &u.KL, &u.Entropy, &u.GradNorm, &u.Seconds)
	}
	return counts, measures
}

func (x *Evaluation) fields() []*int {
	return []*int{&x.Posed, &x.Scored, &x.Dropped, &x.Answers, &x.Correct, &x.Suites, &x.Wanted, &x.Stated, &x.Right, &x.Defective, &x.Found}
}
