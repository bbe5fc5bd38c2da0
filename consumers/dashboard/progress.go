package dashboard

import (
	"maps"
	"time"
)

// Progress is the progress of a run.
type Progress struct {
	Phase Phase         `json:"phase"`
	Tag   string        `json:"tag"`   // of the running evaluation, as in its events
	Step  int           `json:"step"`  // the current step; in an evaluation, the steps trained
	Steps int           `json:"steps"` // steps planned
	Done  int           `json:"done"`  // groups of the phase that ended
	Total int           `json:"total"` // groups of the phase; 0 if not known yet
	Left  time.Duration `json:"-"`
	Known bool          `json:"-"` // whether Left is known

	// OfPhase says that Left is that of the phase: that of the run is not known yet.
	OfPhase bool `json:"left_of_phase,omitempty"`
}

// Phase is the current activity of a run.
type Phase string

// The phases of a run.
const (
	PhaseStarting   Phase = "starting"
	PhaseEvaluating Phase = "evaluating"
	PhaseTraining   Phase = "training"
	PhaseFinished   Phase = "finished"
)

// Progress returns the progress of the run.
func (s *State) Progress() Progress {
	trained := s.Trained()
	p := Progress{Phase: PhaseStarting, Step: trained, Steps: s.Steps}
	p.Left, p.OfPhase, p.Known = s.timeLeft()
	if eval := s.evaluating(); s.Finished != "" {
		p.Phase, p.Left, p.OfPhase, p.Known = PhaseFinished, 0, false, true
	} else if eval != nil {
		p.Phase, p.Tag, p.Done, p.Total = PhaseEvaluating, eval.Tag, eval.ended(), eval.Groups
	} else if s.groupsPerStep > 0 {
		p.Phase, p.Step = PhaseTraining, min(trained+1, max(s.Steps, trained))
		p.Total = s.Steps * s.groupsPerStep
		p.Done = trained * s.groupsPerStep
		for _, groups := range s.endedGroups {
			p.Done += groups
		}
		p.Done = min(p.Done, p.Total)
	}
	return p
}

// evaluating returns the running evaluation, nil if there is none. Training waits
// for an evaluation, so only the newest one can be incomplete.
func (s *State) evaluating() *Eval {
	if n := len(s.evals); n > 0 && !s.evals[n-1].Complete() {
		return s.evals[n-1]
	}
	return nil
}

// rateWindow is the number of seconds of a rate. A step of the small preset
// takes less.
const rateWindow = 30

// rate counts the events of the newest seconds of event time.
type rate struct {
	counts map[int64]int64 // by unix second
	newest int64
}

func (r *rate) add(at time.Time) {
	second := at.Unix()
	if second <= r.newest-rateWindow {
		return
	}
	if r.counts == nil {
		r.counts = map[int64]int64{}
	}
	r.counts[second]++
	if second > r.newest {
		r.newest = second
		maps.DeleteFunc(r.counts, func(old, _ int64) bool { return old <= second-rateWindow })
	}
}

// perSecond divides by the seconds since the oldest event within the window, so
// that the first seconds of a run have a rate.
func (r *rate) perSecond() float64 {
	var sum int64
	oldest := r.newest
	for second, count := range r.counts {
		sum += count
		oldest = min(oldest, second)
	}
	return float64(sum) / float64(r.newest-oldest+1)
}
