package dashboard

import "time"

// maxStepTimes is the number of steps in the estimate of the time left. It is
// large because a shared machine is fast and slow by turns, and an estimate that
// follows each change is of no use.
const maxStepTimes = 200

// minStepTimes is the number of steps below which there is no estimate.
const minStepTimes = 2

// stepTimes measures the steps of an attempt. Steps and evaluations follow one
// another: each begins when the one before it ends.
type stepTimes struct {
	lastEnd time.Time       // of the last step or evaluation
	took    []time.Duration // of the last maxStepTimes steps, oldest first
}

func (t *stepTimes) restart(at time.Time) { *t = stepTimes{lastEnd: at} }

// trained records steps that were trained since lastEnd.
func (t *stepTimes) trained(at time.Time, steps int) {
	each := max(0, at.Sub(t.lastEnd)) / time.Duration(steps)
	for range min(steps, maxStepTimes) {
		t.took = append(t.took, each)
	}
	t.took = t.took[max(0, len(t.took)-maxStepTimes):]
	t.lastEnd = at
}

// mean returns the mean time of a step.
func (t *stepTimes) mean() (time.Duration, bool) {
	if len(t.took) < minStepTimes {
		return 0, false
	}
	var sum time.Duration
	for _, took := range t.took {
		sum += took
	}
	return sum / time.Duration(len(t.took)), true
}

// timeLeft estimates the time until the run is finished. It adds the rest of the
// current step or evaluation, the steps after it, and the evaluations to come,
// each with the time of the last one. A budget shortens it, but neither the
// current step or evaluation nor the evaluation after the last step.
func (s *State) timeLeft() (time.Duration, bool) {
	step, known := s.stepTimes.mean()
	if s.Steps == 0 || !known {
		return 0, false
	}
	left := step*time.Duration(max(0, s.Steps-s.Trained())) + s.evalTime()*time.Duration(s.evalsToCome())
	spent := max(0, s.Last.Sub(s.stepTimes.lastEnd))
	var least time.Duration // that a budget cannot shorten
	if eval := s.evaluating(); eval != nil {
		least = eval.timeLeft(s.evalTime(), spent)
		left += least
	} else if s.Trained() < s.Steps {
		left -= min(spent, step)
		least = max(0, step-spent) + s.evalTime()*time.Duration(min(1, s.evalsToCome()))
	}
	if s.Budget > 0 {
		left = min(left, max(least, s.Budget-s.Last.Sub(s.Started)))
	}
	return left, true
}

// evalTime returns the time of the newest complete evaluation; 0 without one.
func (s *State) evalTime() time.Duration {
	for i := len(s.evals) - 1; i >= 0; i-- {
		if s.evals[i].took > 0 {
			return s.evals[i].took
		}
	}
	return 0
}

// evalsToCome counts the evaluations that have not begun. A run that evaluated
// before training also evaluates after it. A run with evaluations in between
// continues at the same distance of steps; the evaluation at the end of an
// attempt does not count for that distance.
func (s *State) evalsToCome() int {
	n := len(s.evals)
	if n == 0 || s.evals[n-1].Step >= s.Steps {
		return 0
	}
	var regular []int // steps of the first evaluation and of those in between
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

// timeLeft estimates the rest of a running evaluation from the time of the last
// one or, for the first one, from the time spent on it.
func (e *Eval) timeLeft(last, spent time.Duration) time.Duration {
	if e.Groups == 0 {
		return 0
	}
	if last > 0 {
		return last * time.Duration(e.Groups-e.ended()) / time.Duration(e.Groups)
	}
	return spent * time.Duration(e.Groups-e.ended()) / time.Duration(max(1, e.ended()))
}
