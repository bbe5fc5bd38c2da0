package curriculum

import "time"

// recentSteps is the number of steps that predict the duration of the next one.
const recentSteps = 16

// durations measures how long the steps and evaluations of an attempt take, by
// the times of the events that end them. Each begins where the previous one
// ended. Durations decide when a run stops, never what it computes.
type durations struct {
	began      time.Time       // the start of the attempt
	trained    time.Time       // the end of the newest step; at first the start of the attempt
	ended      time.Time       // the end of the newest step or evaluation
	steps      []time.Duration // of the attempt, the newest last
	evaluation time.Duration   // the longest of the run
}

func (d *durations) attemptStarted(at time.Time) {
	d.began, d.trained, d.ended, d.steps = at, at, at, nil
}

// stepsTrained records that both roles have trained so many more steps.
func (d *durations) stepsTrained(at time.Time, steps int) {
	each := max(0, at.Sub(d.ended)) / time.Duration(steps)
	for range min(steps, recentSteps) {
		d.steps = append(d.steps, each)
	}
	d.steps = d.steps[max(0, len(d.steps)-recentSteps):]
	d.trained, d.ended = at, at
}

// evaluated records that a group of an evaluation was scored. An attempt may
// complete an evaluation that an earlier attempt began. Such a part is shorter
// than a whole evaluation, so the longest one counts.
func (d *durations) evaluated(at time.Time) {
	d.evaluation = max(d.evaluation, at.Sub(d.trained))
	d.ended = at
}

// fits reports whether one more step and an evaluation are likely to end within
// the budget. The first step of an attempt always fits, so that every attempt
// makes progress.
func (d *durations) fits(budget time.Duration, now time.Time) bool {
	if len(d.steps) == 0 {
		return true
	}
	var sum time.Duration
	for _, took := range d.steps {
		sum += took
	}
	step := sum / time.Duration(len(d.steps))
	return now.Sub(d.began)+step+d.evaluation <= budget
}
