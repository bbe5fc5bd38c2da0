package dashboard

import (
	"math"

	"codea1/events"
)

// maxPoints is what a chart can show; twice as many are merged two by two.
const maxPoints = 1024

// History holds the means of every training step. Past maxPoints steps a point
// stands for 2, then 4, then 8 steps: nothing is left out, it gets coarser.
type History struct {
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
	Valid    Mean // valid tests of a suite
	Invalid  Mean // invalid tests of a suite

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

func (u *Update) merge(o Update) {
	u.Entropy.merge(o.Entropy)
	u.KL.merge(o.KL)
	u.GradNorm.merge(o.GradNorm)
}

// Mean is a mean that can be added to.
type Mean struct {
	sum float64
	n   int
}

func (m *Mean) add(x float64) { m.sum += x; m.n++ }

func (m *Mean) merge(o Mean) { m.sum += o.sum; m.n += o.n }

// Value returns the mean, NaN of nothing.
func (m Mean) Value() float64 {
	if m.n == 0 {
		return math.NaN()
	}
	return m.sum / float64(m.n)
}

func newHistory() History { return History{stride: 1} }

// Last returns the newest point in which a group was rewarded, and the first
// step it stands for; step 0 if there is none.
func (h *History) Last() (step int, p Point) {
	for i := len(h.points) - 1; i >= 0; i-- {
		if h.points[i].Groups > 0 {
			return 1 + i*h.stride, h.points[i]
		}
	}
	return 0, Point{}
}

// LastHist returns the newest share of historical tests passed: not every step
// poses a question that has any.
func (h *History) LastHist() Mean {
	for i := len(h.points) - 1; i >= 0; i-- {
		if h.points[i].PassHist.n > 0 {
			return h.points[i].PassHist
		}
	}
	return Mean{}
}

// at returns the point of a training step, making room for it.
func (h *History) at(step int) *Point {
	for (step-1)/h.stride >= maxPoints {
		h.coarsen()
	}
	i := (step - 1) / h.stride
	for len(h.points) <= i {
		var size int
		if n := len(h.points); n > 0 {
			size = h.points[n-1].Size
		}
		h.points = append(h.points, Point{Size: size})
	}
	return &h.points[i]
}

func (h *History) coarsen() {
	merged := h.points[:0]
	for i := 0; i < len(h.points); i += 2 {
		p := h.points[i]
		if i+1 < len(h.points) {
			p.merge(h.points[i+1])
		}
		merged = append(merged, p)
	}
	h.points, h.stride = merged, 2*h.stride
}

func (p *Point) merge(o Point) {
	p.Groups += o.Groups
	p.Dropped += o.Dropped
	p.Code.merge(o.Code)
	p.Test.merge(o.Test)
	p.PassNew.merge(o.PassNew)
	p.PassHist.merge(o.PassHist)
	p.Valid.merge(o.Valid)
	p.Invalid.merge(o.Invalid)
	p.Entered += o.Entered
	p.Left += o.Left
	p.Size = o.Size
	p.CodeUpdate.merge(o.CodeUpdate)
	p.TestUpdate.merge(o.TestUpdate)
}

func (h *History) drop(step int) {
	if step > 0 {
		h.at(step).Dropped++
	}
}

func (h *History) update(p *events.PolicyUpdated) {
	if p.Step < 1 {
		return
	}
	u := &h.at(p.Step).CodeUpdate
	if p.Role == events.RoleTest {
		u = &h.at(p.Step).TestUpdate
	}
	u.Entropy.add(p.Metrics.Entropy)
	u.KL.add(p.Metrics.KL)
	u.GradNorm.add(p.Metrics.GradNorm)
}

func (h *History) reward(g *events.GroupRewarded, entered, left, size int) {
	if g.Plan.Step < 1 {
		return
	}
	p := h.at(g.Plan.Step)
	p.Groups++
	p.Entered += entered
	p.Left += left
	p.Size = size
	for m := range g.Code {
		answer := &g.Code[m]
		if !answer.Masked {
			p.Code.add(answer.Reward)
		}
		remembered := false
		for n := range g.Test[m] {
			suite := &g.Test[m][n]
			if suite.Masked {
				continue
			}
			p.Test.add(suite.Reward)
			p.Valid.add(float64(suite.Valid))
			p.Invalid.add(float64(suite.Invalid))
			if answer.Loads && suite.Valid > 0 {
				p.PassNew.add(suite.PassNew)
			}
			// The historical tests are the answer's; every suite repeats them.
			if answer.Loads && !remembered && suite.PassHist+suite.FailHist > 0 {
				p.PassHist.add(suite.PassHist)
				remembered = true
			}
		}
	}
}
