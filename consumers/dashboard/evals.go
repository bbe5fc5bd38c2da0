package dashboard

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"codea1/consumers/evaluation"
	"codea1/events"
)

// maxEvals bounds the evaluations that are kept.
const maxEvals = 64

// Eval is one evaluation so far.
type Eval struct {
	evaluation.Figures
	Tag     string
	Step    int // steps trained before it
	Dropped int // groups

	closing bool          // caused by the end of an attempt
	attempt int           // attempt in which it began
	took    time.Duration // once it is complete; 0 if it began in an earlier attempt

	low, high float64 // interval of avg@k, once it is complete: computing it takes milliseconds
}

// EvalFigure is a figure of an evaluation.
type EvalFigure struct {
	Name  string // in Snapshot and, after codea1_evaluation_, in the metrics
	Title string // in tables
	Help  string
	Of    func(*Eval) float64
}

// EvalFigures are the figures of an evaluation.
var EvalFigures = []EvalFigure{
	{"avg", "Code LLM avg@k", "avg@k: mean over held-out problems of the share of correct answers.", (*Eval).Avg},
	{"validity", "Test LLM validity", "Share of the tests written that are kept and right as stated.", (*Eval).Validity},
	{"defect_finding", "Test LLM defect-finding", "Share of the suites for a defective answer with a failing test that is right as stated.", (*Eval).DefectFinding},
	{"reach", "Test LLM reach", "Share of the suites for a defective answer with a failing kept test, right or wrong as stated.", (*Eval).Reach},
	{"trivial_inputs", "Test LLM trivial inputs", "Share of the kept tests with an empty or one-element input.", (*Eval).TrivialInputs},
}

// Complete reports whether every group was scored or dropped.
func (e *Eval) Complete() bool { return e.Groups > 0 && e.ended() >= e.Groups }

// ended returns the number of groups that were scored or dropped.
func (e *Eval) ended() int { return e.Scored + e.Dropped }

// Name returns the time of the evaluation in words.
func (e *Eval) Name() string {
	if e.Step == 0 {
		return "step 0"
	}
	return fmt.Sprintf("after step %d", e.Step)
}

// evals holds the evaluations in the order in which they began.
type evals []*Eval

// Before returns the evaluation of the policies that the run started from; nil
// if there is none yet.
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
	// The first evaluation stays, because all others are compared with it.
	if len(*es) >= maxEvals {
		*es = slices.Delete(*es, 1, 2)
	}
	e := &Eval{Tag: tag, Step: step, low: math.NaN(), high: math.NaN()}
	*es = append(*es, e)
	return e
}

func (es *evals) score(p *events.EvalScored) *Eval {
	e := es.find(p.Plan.Tag, p.Plan.Step)
	e.Add(p)
	return e
}

// drop takes the tag from the group's name, e-TAG-SLOT, because the payload of
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
