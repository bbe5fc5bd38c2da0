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
	Entered int // tests that entered the Mistake Book
	Left    int // tests that left it
	Size    int // tests in it after the last group
	means   [measures]Mean
}

// measure is a value that a Point has the mean of.
type measure int

// The measures of groups, which the page shows, and then those of updates.
const (
	rewardCode measure = iota // R_code of an answer
	rewardTest                // R_test of a suite
	passNew                   // share of its own suite's tests that an answer passes; suites with a kept test, answers that load
	passHist                  // share of the historical tests that an answer passes; answers that load
	kept                      // tests of a suite; a test that is wrong as stated counts here and in the next
	wrongOrDiscarded
	entropyCode // nats per token
	entropyTest
	klCode // to the reference model
	klTest
	gradNormCode // before clipping
	gradNormTest
	measures

	groupMeasures = entropyCode
)

// measureNames are the measures' columns in charts.js.
var measureNames = [measures]string{
	"reward_code", "reward_test", "pass_new", "pass_hist", "kept", "wrong_or_discarded",
	"entropy_code", "entropy_test", "kl_code", "kl_test", "grad_norm_code", "grad_norm_test",
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
		if mean := s.points[i].means[passHist]; mean.n > 0 {
			return mean
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
	p.Entered += o.Entered
	p.Left += o.Left
	p.Size = o.Size
	for m := range p.means {
		p.means[m].merge(o.means[m])
	}
}

func (s *Series) drop(step int) {
	if step > 0 {
		s.at(step).Dropped++
	}
}

func (s *Series) update(p *events.PolicyUpdated) {
	if p.Step < 1 {
		return
	}
	entropy, kl, gradNorm := entropyCode, klCode, gradNormCode
	if p.Role == events.RoleTest {
		entropy, kl, gradNorm = entropyTest, klTest, gradNormTest
	}
	means := &s.at(p.Step).means
	means[entropy].add(p.Metrics.Entropy)
	means[kl].add(p.Metrics.KL)
	means[gradNorm].add(p.Metrics.GradNorm)
}

func (s *Series) reward(g *events.GroupRewarded, entered, left, size int) {
	if g.Plan.Step >= 1 {
		s.at(g.Plan.Step).reward(g, entered, left, size)
	}
}

func (p *Point) reward(g *events.GroupRewarded, entered, left, size int) {
	p.Groups++
	p.Entered += entered
	p.Left += left
	p.Size = size
	for m := range g.Code {
		answer := &g.Code[m]
		if !answer.Masked {
			p.means[rewardCode].add(answer.Reward)
		}
		counted := false
		for n := range g.Test[m] {
			suite := &g.Test[m][n]
			if suite.Masked {
				continue
			}
			p.means[rewardTest].add(suite.Reward)
			p.means[kept].add(float64(suite.Valid))
			p.means[wrongOrDiscarded].add(float64(suite.Invalid))
			if answer.Loads && suite.Valid > 0 {
				p.means[passNew].add(suite.PassNew)
			}
			// Every suite of an answer repeats the shares of the historical tests.
			if answer.Loads && !counted && suite.PassHist+suite.FailHist > 0 {
				p.means[passHist].add(suite.PassHist)
				counted = true
			}
		}
	}
}

// view returns the columns of the first measures for charts.js. All are as long
// as step, the first step of each row.
func (s *Series) view(first measure) object {
	step := make([]int, len(s.points))
	for i := range step {
		step[i] = 1 + i*s.stride
	}
	view := object{
		"stride": s.stride, "step": step,
		"book_size":    column(s, func(p *Point) int { return p.Size }),
		"book_entered": column(s, func(p *Point) int { return p.Entered }),
		"book_left":    column(s, func(p *Point) int { return p.Left }),
	}
	for m, name := range measureNames[:first] {
		view[name] = column(s, func(p *Point) number { return p.means[m].number() })
	}
	return view
}

// column returns a value of each point.
func column[T any](s *Series, of func(*Point) T) []T {
	values := make([]T, len(s.points))
	for i := range s.points {
		values[i] = of(&s.points[i])
	}
	return values
}
