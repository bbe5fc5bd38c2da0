package dashboard

import (
	"math"
	"slices"

	"codea1/events"
)

// maxPoints bounds the points of a chart, which has about as many pixels. Beyond
// it, points are merged two by two.
const maxPoints = 512

// Series holds the means of every training step. After maxPoints steps a point
// holds 2 steps, then 4, then 8: nothing is left out, the series gets coarser.
type Series struct {
	stride int // steps per point
	points []Point
	clock  int64 // events applied so far
	// shadows are the recipes of reward.shadowed, at most events.MaxShadows.
	shadows []string
}

// Point is the sum of one or more consecutive steps.
type Point struct {
	Groups  int // rewarded
	Dropped int
	Entered int // tests that entered the Mistake Book
	Left    int // tests that left it
	Size    int // tests in it after the last group
	means   [measures]Mean
	shadows [events.MaxShadows][shadowMeasures]Mean // by Series.shadows
	changed int64                                   // the clock of its last change
}

// The measures of a group under another recipe than that of its run.
const (
	shadowCode   = iota // R_code of an answer
	shadowTest          // R_test of a suite
	shadowChoice        // 1 if another answer is chosen for the Test LLM
	shadowOrder         // share of the pairs of answers that have the other order
	shadowMeasures
)

// shadowNames are the first words of their columns in charts.js; the recipe follows.
var shadowNames = [shadowMeasures]string{"shadow_code", "shadow_test", "shadow_choice", "shadow_order"}

// measure is a value that a Point has the mean of.
type measure int

// The measures of groups, and then those of updates: one for each role.
const (
	rewardCode measure = iota // R_code of an answer
	rewardTest                // R_test of a suite
	passNew                   // share of its own suite's tests that an answer passes; suites with a kept test, answers that load
	passHist                  // share of the historical tests that an answer passes; answers that load
	kept                      // tests of a suite; a test that is wrong as stated counts here and in the next
	wrongOrDiscarded
	wrong     // as stated
	discarded // tests of a suite
	breaking  // share of the suites with a kept test that their answer fails
	staleCode // versions that the sampling policy was behind
	staleTest
	lossCode
	lossTest
	entropyCode // nats per token
	entropyTest
	klCode // to the reference model
	klTest
	clipCode // share of the tokens with a clipped ratio
	clipTest
	gradNormCode // before clipping
	gradNormTest
	lengthCode // tokens of a response
	lengthTest
	rateCode // learning rate
	rateTest
	secondsCode // of an update
	secondsTest
	mismatchCode // KL divergence of the sampler from the trainer, nats per token, if it was measured
	mismatchTest
	measures
)

// measureNames are the measures' columns in charts.js.
var measureNames = [measures]string{
	"reward_code", "reward_test", "pass_new", "pass_hist", "kept", "wrong_or_discarded", "wrong", "discarded", "breaking",
	"stale_code", "stale_test", "loss_code", "loss_test", "entropy_code", "entropy_test", "kl_code", "kl_test",
	"clip_code", "clip_test", "grad_norm_code", "grad_norm_test", "length_code", "length_test", "lr_code", "lr_test",
	"seconds_code", "seconds_test", "mismatch_code", "mismatch_test",
}

// Mean is a running mean.
type Mean struct {
	sum float64
	n   int
}

func (m *Mean) add(x float64) { m.sum += x; m.n++ }

// addTimes adds the mean of n values.
func (m *Mean) addTimes(mean float64, n int) { m.sum += mean * float64(n); m.n += n }

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
		s.points = append(s.points, Point{Size: size, changed: s.clock})
	}
	s.points[i].changed = s.clock
	return &s.points[i]
}

// renew marks all points as changed at a clock.
func (s *Series) renew(clock int64) {
	s.clock = clock
	for i := range s.points {
		s.points[i].changed = clock
	}
}

func (s *Series) coarsen() {
	merged := s.points[:0]
	for i := 0; i < len(s.points); i += 2 {
		p := s.points[i]
		if i+1 < len(s.points) {
			p.merge(s.points[i+1])
		}
		p.changed = s.clock
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
	for i := range p.shadows {
		for m := range p.shadows[i] {
			p.shadows[i][m].merge(o.shadows[i][m])
		}
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
	means, m, other := &s.at(p.Step).means, &p.Metrics, measure(0)
	if p.Role == events.RoleTest {
		other = 1
	}
	for of, value := range map[measure]float64{
		lossCode: m.Loss, entropyCode: m.Entropy, klCode: m.KL, clipCode: m.ClipFraction, gradNormCode: m.GradNorm,
		rateCode: m.LearningRate, secondsCode: m.Seconds,
	} {
		means[of+other].add(value)
	}
	if m.Mismatch != nil {
		means[mismatchCode+other].add(m.Mismatch.KL)
	}
	if m.Sequences > 0 {
		means[lengthCode+other].add(float64(m.Tokens) / float64(m.Sequences))
	}
}

// executed adds the counts of tests, which only code.executed has apart.
func (s *Series) executed(p *events.CodeExecuted) {
	if p.Plan.Purpose != events.PurposeTrain || p.Plan.Step < 1 {
		return
	}
	means := &s.at(p.Plan.Step).means
	for m := range p.Answers {
		for n := range p.Answers[m].Suites {
			if suite := &p.Answers[m].Suites[n]; suite.Failure == "" && p.Answers[m].Failure == "" {
				_, ofWrong, ofDiscarded := suite.Counts()
				means[wrong].add(float64(ofWrong))
				means[discarded].add(float64(ofDiscarded))
			}
		}
	}
}

func (s *Series) reward(g *events.GroupRewarded, entered, left, size int) {
	if g.Plan.Step >= 1 {
		s.at(g.Plan.Step).reward(g, entered, left, size)
	}
}

// shadow adds the rewards of a group under other recipes. Recipes after the first
// events.MaxShadows of the run are left out.
func (s *Series) shadow(p *events.RewardShadowed) {
	if p.Plan.Step < 1 {
		return
	}
	for n := range p.Shadows {
		shadow := &p.Shadows[n]
		i := slices.Index(s.shadows, shadow.Recipe)
		if i < 0 && len(s.shadows) < events.MaxShadows {
			i, s.shadows = len(s.shadows), append(s.shadows, shadow.Recipe)
		}
		if i < 0 || shadow.Failure != "" {
			continue
		}
		means := &s.at(p.Plan.Step).shadows[i]
		for m := range shadow.Code {
			if !shadow.Code[m].Masked {
				means[shadowCode].add(shadow.Code[m].Reward)
			}
			for n := range shadow.Test[m] {
				if suite := &shadow.Test[m][n]; !suite.Masked {
					means[shadowTest].add(suite.Reward)
				}
			}
		}
		other := 0.0
		if shadow.Other {
			other = 1
		}
		means[shadowChoice].add(other)
		if shadow.Pairs > 0 {
			means[shadowOrder].addTimes(float64(shadow.Reversed)/float64(shadow.Pairs), shadow.Pairs)
		}
	}
}

// stale adds the staleness of a group's samples in the roles that have versions.
func (s *Series) stale(g *events.GroupRewarded, models events.Models) {
	for role, of := range map[events.Role]measure{events.RoleCode: staleCode, events.RoleTest: staleTest} {
		if g.Plan.Step >= 1 && models.Version(role, 1) == 1 {
			s.at(g.Plan.Step).means[of].add(max(0, staleness(g, role)))
		}
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
				broken := 0.0
				if suite.FailNew > 0 {
					broken = 1
				}
				p.means[breaking].add(broken)
			}
			// Every suite of an answer repeats the shares of the historical tests.
			if answer.Loads && !counted && suite.PassHist+suite.FailHist > 0 {
				p.means[passHist].add(suite.PassHist)
				counted = true
			}
		}
	}
}

// view returns the columns of charts.js for the points that changed after a clock;
// from is the first of them. All columns are as long as step, the first step of
// each row.
func (s *Series) view(since int64) object {
	from := slices.IndexFunc(s.points, func(p Point) bool { return p.changed > since })
	if from < 0 {
		from = len(s.points)
	}
	points := s.points[from:]
	step := make([]int, len(points))
	for i := range step {
		step[i] = 1 + (from+i)*s.stride
	}
	view := object{
		"stride": s.stride, "from": from, "step": step,
		"book_size":    column(points, func(p *Point) int { return p.Size }),
		"book_entered": column(points, func(p *Point) int { return p.Entered }),
		"book_left":    column(points, func(p *Point) int { return p.Left }),
		"dropped":      column(points, func(p *Point) int { return p.Dropped }),
	}
	for m, name := range measureNames {
		view[name] = column(points, func(p *Point) number { return p.means[m].number() })
	}
	for i, recipe := range s.shadows {
		for m, name := range shadowNames {
			view[name+" "+brief(recipe)] = column(points, func(p *Point) number { return p.shadows[i][m].number() })
		}
	}
	return view
}

// column returns a value of each point.
func column[T any](points []Point, of func(*Point) T) []T {
	values := make([]T, len(points))
	for i := range points {
		values[i] = of(&points[i])
	}
	return values
}
