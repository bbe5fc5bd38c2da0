package dashboard

import (
	"math"

	"codea1/events"
)

// maxPoints bounds the points of a chart. Beyond it, points are merged two by
// two.
const maxPoints = 1024

// Series holds the means of every training step. After maxPoints steps a point
// holds 2 steps, then 4, then 8: nothing is left out, the series gets coarser.
type Series struct {
	stride int // steps per point
	points []Point
}

// Point is the sum of one or more consecutive steps.
type Point struct {
	Groups  int // rewarded
	Dropped int

	Code     Mean // R_code of an answer
	Test     Mean // R_test of a suite
	PassNew  Mean // share of its own suite's tests that an answer passes; suites with a kept test, answers that load
	PassHist Mean // share of the historical tests that an answer passes; answers that load

	// Tests of a suite. A test that is wrong as stated counts in both.
	Kept             Mean
	WrongOrDiscarded Mean

	Entered int // tests that entered the Mistake Book
	Left    int // tests that left it
	Size    int // tests in it after the last group

	CodeUpdate Update
	TestUpdate Update
}

// Update holds the means over the updates of a role's policy.
type Update struct {
	Entropy  Mean // nats per token
	KL       Mean // to the reference model
	GradNorm Mean // before clipping
}

func (u *Update) add(m *events.PolicyMetrics) {
	u.Entropy.add(m.Entropy)
	u.KL.add(m.KL)
	u.GradNorm.add(m.GradNorm)
}

func (u *Update) merge(o Update) {
	u.Entropy.merge(o.Entropy)
	u.KL.merge(o.KL)
	u.GradNorm.merge(o.GradNorm)
}

// Mean is a running mean.
type Mean struct {
	sum float64
	n   int
}

func (m *Mean) add(x float64) { m.sum += x; m.n++ }

func (m *Mean) merge(o Mean) { m.sum += o.sum; m.n += o.n }

// Value returns the mean, NaN without a value.
func (m Mean) Value() float64 {
	if m.n == 0 {
		return math.NaN()
	}
	return m.sum / float64(m.n)
}

func newSeries() Series { return Series{stride: 1} }

// Last returns the newest point with a rewarded group and its first step; step 0
// if there is none.
func (s *Series) Last() (step int, p Point) {
	for i := len(s.points) - 1; i >= 0; i-- {
		if s.points[i].Groups > 0 {
			return 1 + i*s.stride, s.points[i]
		}
	}
	return 0, Point{}
}

// LastHist returns the newest share of historical tests passed. It may be of an
// earlier step than Last, because not every step has historical tests.
func (s *Series) LastHist() Mean {
	for i := len(s.points) - 1; i >= 0; i-- {
		if s.points[i].PassHist.n > 0 {
			return s.points[i].PassHist
		}
	}
	return Mean{}
}

// at returns the point of a training step, which may be new.
func (s *Series) at(step int) *Point {
	for (step-1)/s.stride >= maxPoints {
		s.coarsen()
	}
	i := (step - 1) / s.stride
	for len(s.points) <= i {
		var size int
		if n := len(s.points); n > 0 {
			size = s.points[n-1].Size
		}
		s.points = append(s.points, Point{Size: size})
	}
	return &s.points[i]
}

func (s *Series) coarsen() {
	merged := s.points[:0]
	for i := 0; i < len(s.points); i += 2 {
		p := s.points[i]
		if i+1 < len(s.points) {
			p.merge(s.points[i+1])
		}
		merged = append(merged, p)
	}
	s.points, s.stride = merged, 2*s.stride
}

func (p *Point) merge(o Point) {
	p.Groups += o.Groups
	p.Dropped += o.Dropped
	p.Code.merge(o.Code)
	p.Test.merge(o.Test)
	p.PassNew.merge(o.PassNew)
	p.PassHist.merge(o.PassHist)
	p.Kept.merge(o.Kept)
	p.WrongOrDiscarded.merge(o.WrongOrDiscarded)
	p.Entered += o.Entered
	p.Left += o.Left
	p.Size = o.Size
	p.CodeUpdate.merge(o.CodeUpdate)
	p.TestUpdate.merge(o.TestUpdate)
}

func (s *Series) drop(step int) {
	if step > 0 {
		s.at(step).Dropped++
	}
}

func (s *Series) update(p *events.PolicyUpdated) {
	switch {
	case p.Step < 1:
	case p.Role == events.RoleTest:
		s.at(p.Step).TestUpdate.add(&p.Metrics)
	default:
		s.at(p.Step).CodeUpdate.add(&p.Metrics)
	}
}

func (s *Series) reward(g *events.GroupRewarded, entered, left, size int) {
	if g.Plan.Step < 1 {
		return
	}
	p := s.at(g.Plan.Step)
	p.Groups++
	p.Entered += entered
	p.Left += left
	p.Size = size
	for m := range g.Code {
		answer := &g.Code[m]
		if !answer.Masked {
			p.Code.add(answer.Reward)
		}
		counted := false
		for n := range g.Test[m] {
			suite := &g.Test[m][n]
			if suite.Masked {
				continue
			}
			p.Test.add(suite.Reward)
			p.Kept.add(float64(suite.Valid))
			p.WrongOrDiscarded.add(float64(suite.Invalid))
			if answer.Loads && suite.Valid > 0 {
				p.PassNew.add(suite.PassNew)
			}
			// Every suite of an answer repeats the shares of the historical tests.
			if answer.Loads && !counted && suite.PassHist+suite.FailHist > 0 {
				p.PassHist.add(suite.PassHist)
				counted = true
			}
		}
	}
}
