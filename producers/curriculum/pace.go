package curriculum

import "time"

// paceSteps is the number of steps the time of the next one is guessed from.
const paceSteps = 16

// pace measures how long the steps and evaluations of an attempt take, by the
// times of the events that end them: each begins where the one before it ended.
// Times say how long a run goes on, never what it computes.
type pace struct {
	began      time.Time       // when the attempt was started
	trained    time.Time       // when the newest step was, or began
	ended      time.Time       // when the newest step or evaluation did
	steps      []time.Duration // of the attempt, the newest last
	evaluation time.Duration   // the longest of the run
}

func (p *pace) attemptStarted(at time.Time) {
	p.began, p.trained, p.ended, p.steps = at, at, at, nil
}

// stepsTrained notes that both roles have trained so many more steps.
func (p *pace) stepsTrained(at time.Time, steps int) {
	each := max(0, at.Sub(p.ended)) / time.Duration(steps)
	for range min(steps, paceSteps) {
		p.steps = append(p.steps, each)
	}
	p.steps = p.steps[max(0, len(p.steps)-paceSteps):]
	p.trained, p.ended = at, at
}

// evaluated notes that a group of an evaluation was scored. What an attempt
// finds half done is shorter than a whole one, hence the longest.
func (p *pace) evaluated(at time.Time) {
	p.evaluation = max(p.evaluation, at.Sub(p.trained))
	p.ended = at
}

// fits reports whether one more step and an evaluation, at the pace so far,
// would end within the budget. As long as the attempt has trained no step, they
// always fit: every attempt makes headway.
func (p *pace) fits(budget time.Duration, now time.Time) bool {
	if len(p.steps) == 0 {
		return true
	}
	var sum time.Duration
	for _, took := range p.steps {
		sum += took
	}
	step := sum / time.Duration(len(p.steps))
	return now.Sub(p.began)+step+p.evaluation <= budget
}
