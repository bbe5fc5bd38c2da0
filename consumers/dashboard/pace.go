package dashboard

import "time"

// Progress says where a run stands.
type Progress struct {
	Phase Phase
	Tag   string // the evaluation under way, as its events name it
	Step  int    // the step under way; in an evaluation, the steps trained
	Steps int    // steps planned
	Done  int    // groups of the phase that ended
	Total int    // groups of the phase; 0 if not known yet
	Left  time.Duration
	Known bool // whether Left is known
}

// Phase is what a run does.
type Phase string

// The phases of a run.
const (
	PhaseStarting   Phase = "starting"
	PhaseEvaluating Phase = "evaluating"
	PhaseTraining   Phase = "training"
	PhaseFinished   Phase = "finished"
)

// Progress returns where the run stands.
func (s *State) Progress() Progress {
	trained := s.Trained()
	p := Progress{Phase: PhaseStarting, Step: trained, Steps: s.Steps}
	p.Left, p.Known = s.left()
	if eval := s.evaluating(); s.Finished != "" {
		p.Phase, p.Left, p.Known = PhaseFinished, 0, true
	} else if eval != nil {
		p.Phase, p.Tag, p.Done, p.Total = PhaseEvaluating, eval.Tag, eval.done(), eval.Groups
	} else if s.perStep > 0 {
		p.Phase, p.Step = PhaseTraining, min(trained+1, max(s.Steps, trained))
		p.Total = s.Steps * s.perStep
		p.Done = trained * s.perStep
		for _, groups := range s.open {
			p.Done += groups
		}
		p.Done = min(p.Done, p.Total)
	}
	return p
}

// evaluating returns the evaluation under way. Training waits for it, so it is
// the newest one as long as it is not complete.
func (s *State) evaluating() *Eval {
	if n := len(s.evals); n > 0 && !s.evals[n-1].Complete() {
		return s.evals[n-1]
	}
	return nil
}

// rate counts events per second of event time.
type rate struct {
	seconds [rateWindow]int64 // unix seconds
	counts  [rateWindow]int64
	newest  int64
}

// rateWindow is the number of seconds a rate is taken over, long enough for a
// step of the small preset.
const rateWindow = 30

func (r *rate) add(at time.Time) {
	second := at.Unix()
	i := ((second % rateWindow) + rateWindow) % rateWindow
	if second <= r.newest-rateWindow {
		return
	}
	if r.seconds[i] != second {
		r.seconds[i], r.counts[i] = second, 0
	}
	r.counts[i]++
	r.newest = max(r.newest, second)
}

// perSecond is taken from the oldest second within the window, so that the
// first seconds of a run show their rate.
func (r *rate) perSecond() float64 {
	var sum int64
	oldest := r.newest
	for i, second := range r.seconds {
		if r.counts[i] > 0 && second > r.newest-rateWindow {
			sum += r.counts[i]
			oldest = min(oldest, second)
		}
	}
	return float64(sum) / float64(r.newest-oldest+1)
}
