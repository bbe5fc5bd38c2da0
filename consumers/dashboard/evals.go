package dashboard

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"codea1/events"
)

// Bounds of what is kept of evaluations.
const (
	maxEvals        = 64
	maxEvalProblems = 1 << 16
)

// Eval is one evaluation so far. Its shares are within [0, 1], and NaN where
// nothing was measured.
type Eval struct {
	Tag     string
	Step    int // steps trained when it was made
	Groups  int // groups posed
	Scored  int
	Dropped int
	Answers int // k of avg@k: the most answers a problem has

	Suites    int
	Stated    int // tests written
	Valid     int // of those, kept with the right answer stated
	Wanted    int // tests asked for
	Defective int // suites for a defective answer
	Found     int // of those, with a valid test that fails

	avg     Mean               // of the share of correct answers
	shares  map[string]float64 // the same by problem
	closing bool               // made because an attempt ended
	attempt int                // in which it began
	took    time.Duration      // once it is complete; 0 where it began in an earlier attempt
}

// Complete reports whether every group was scored or dropped.
func (e *Eval) Complete() bool { return e.Groups > 0 && e.done() >= e.Groups }

func (e *Eval) done() int { return e.Scored + e.Dropped }

// Name says when the evaluation was made.
func (e *Eval) Name() string {
	if e.Step == 0 {
		return "step 0"
	}
	return fmt.Sprintf("after step %d", e.Step)
}

// Avg returns avg@k: the mean over problems of the share of correct answers.
func (e *Eval) Avg() float64 { return e.avg.Value() }

// Validity returns the valid tests per test written.
func (e *Eval) Validity() float64 { return share(e.Valid, e.Stated) }

// DefectFinding returns the share of suites for a defective answer that show
// its defect.
func (e *Eval) DefectFinding() float64 { return share(e.Found, e.Defective) }

// Problems returns the problems whose answers were scored.
func (e *Eval) Problems() int { return e.avg.n }

// changes returns, for each problem of both evaluations, by how much the share
// of correct answers changed.
func changes(before, after *Eval) []float64 {
	var out []float64
	for _, p := range slices.Sorted(maps.Keys(before.shares)) {
		if now, ok := after.shares[p]; ok {
			out = append(out, now-before.shares[p])
		}
	}
	return out
}

// evals holds the evaluations in the order in which they began.
type evals []*Eval

// Evals returns the evaluations of the run in order.
func (s *State) Evals() []*Eval { return s.evals }

// Before returns the evaluation of the policies the run started from; nil if
// there is none yet.
func (s *State) Before() *Eval {
	if len(s.evals) == 0 || s.evals[0].Step != 0 {
		return nil
	}
	return s.evals[0]
}

// After returns the newest evaluation of trained policies; nil if there is
// none yet.
func (s *State) After() *Eval {
	if n := len(s.evals); n > 0 && s.evals[n-1].Step > 0 {
		return s.evals[n-1]
	}
	return nil
}

func (es *evals) find(tag string, step int) *Eval {
	for _, e := range *es {
		if e.Tag == tag {
			return e
		}
	}
	// The first one is what all others are compared with: it stays.
	if len(*es) >= maxEvals {
		*es = slices.Delete(*es, 1, 2)
	}
	e := &Eval{Tag: tag, Step: step, shares: map[string]float64{}}
	*es = append(*es, e)
	return e
}

func (es *evals) score(p *events.EvalScored) *Eval {
	e := es.find(p.Plan.Tag, p.Plan.Step)
	e.Groups = max(e.Groups, p.Plan.Groups)
	e.Scored++
	e.Suites += p.Suites
	e.Wanted += p.Wanted
	e.Stated += p.Stated
	e.Valid += p.Valid
	e.Defective += p.Defective
	e.Found += p.Found
	if len(p.Correct) > 0 {
		right := 0
		for _, c := range p.Correct {
			if c {
				right++
			}
		}
		e.avg.add(share(right, len(p.Correct)))
		if len(e.shares) < maxEvalProblems {
			e.shares[p.ProblemID] = share(right, len(p.Correct))
		}
		e.Answers = max(e.Answers, len(p.Correct))
	}
	return e
}

// drop takes the tag from the group's name, e-TAG-SLOT: the payload of
// group.dropped does not carry it.
func (es *evals) drop(group string, p *events.GroupDropped) *Eval {
	tag, ok := strings.CutPrefix(group, "e-")
	end := strings.LastIndexByte(tag, '-')
	if !ok || end < 0 {
		return nil
	}
	e := es.find(tag[:end], p.Step)
	e.Groups = max(e.Groups, p.Groups)
	e.Dropped++
	return e
}

func share(part, whole int) float64 {
	if whole == 0 {
		return math.NaN()
	}
	return float64(part) / float64(whole)
}
