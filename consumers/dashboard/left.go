package dashboard

import "time"

// maxPace is the number of steps the time left is guessed from. It is long: a
// machine shared with others is fast and slow in turns, and a guess that
// follows every turn is of no use to who waits.
const maxPace = 200

// minPace is the number of steps without which there is no guess.
const minPace = 2

// pace measures how long the steps of an attempt take. Steps and evaluations
// follow one another: each begins at the mark that the one before it left.
type pace struct {
	mark time.Time
	took []time.Duration // of the last maxPace steps, oldest first
}

func (p *pace) restart(at time.Time) { *p = pace{mark: at} }

// trained notes that steps were trained since the mark.
func (p *pace) trained(at time.Time, steps int) {
	each := max(0, at.Sub(p.mark)) / time.Duration(steps)
	for range min(steps, maxPace) {
		p.took = append(p.took, each)
	}
	p.took = p.took[max(0, len(p.took)-maxPace):]
	p.mark = at
}

// mean returns the time of a step.
func (p *pace) mean() (time.Duration, bool) {
	if len(p.took) < minPace {
		return 0, false
	}
	var sum time.Duration
	for _, took := range p.took {
		sum += took
	}
	return sum / time.Duration(len(p.took)), true
}

// left guesses the time until the run is finished: what is left of the step or
// the evaluation under way, the steps after it and the evaluations to come,
// which take as long as the last one did. A budget cuts it short, but neither
// what is under way nor the evaluation after the last step.
func (s *State) left() (time.Duration, bool) {
	step, known := s.pace.mean()
	if s.Steps == 0 || !known {
		return 0, false
	}
	left := step*time.Duration(max(0, s.Steps-s.Trained())) + s.evalTime()*time.Duration(s.evalsToCome())
	spent := max(0, s.Last.Sub(s.pace.mark))
	var begun time.Duration
	if eval := s.evaluating(); eval != nil {
		begun = eval.left(s.evalTime(), spent)
		left += begun
	} else if s.Trained() < s.Steps {
		left -= min(spent, step)
		begun = max(0, step-spent) + s.evalTime()*time.Duration(min(1, s.evalsToCome()))
	}
	if s.Budget > 0 {
		left = min(left, max(begun, s.Budget-s.Last.Sub(s.Started)))
	}
	return left, true
}

// evalTime returns how long the newest complete evaluation took; 0 before one
// is complete.
func (s *State) evalTime() time.Duration {
	for i := len(s.evals) - 1; i >= 0; i-- {
		if s.evals[i].took > 0 {
			return s.evals[i].took
		}
	}
	return 0
}

// evalsToCome counts the evaluations that have not begun. A run that evaluated
// before training does so after it; one that did in between goes on in the
// same rhythm, to which the one at the end of an attempt does not belong.
func (s *State) evalsToCome() int {
	n := len(s.evals)
	if n == 0 || s.evals[n-1].Step >= s.Steps {
		return 0
	}
	var regular []int // steps of the evaluations in between, and of the first
	for _, e := range s.evals {
		if !e.closing {
			regular = append(regular, e.Step)
		}
	}
	if len(regular) < 2 {
		return 1
	}
	last := regular[len(regular)-1]
	every := max(1, last-regular[len(regular)-2])
	return (s.Steps-last+every-1)/every - (s.evals[n-1].Step-last)/every
}

// left returns what is left of an evaluation under way for the time spent: its
// share of what the last one took or, for the first one, of its own pace.
func (e *Eval) left(last, spent time.Duration) time.Duration {
	if e.Groups == 0 {
		return 0
	}
	if last > 0 {
		return last * time.Duration(e.Groups-e.done()) / time.Duration(e.Groups)
	}
	return spent * time.Duration(e.Groups-e.done()) / time.Duration(max(1, e.done()))
}
