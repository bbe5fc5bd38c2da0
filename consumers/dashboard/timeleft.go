package dashboard

import (
	"time"

	"codea1/events"
)

// maxStepTimes bounds the steps in the estimate of the time left. It is large because a
// shared machine is fast and slow by turns, and an estimate that follows each change is of
// no use.
const maxStepTimes = 200

// minStepTimes is the number of steps below which there is no estimate.
const minStepTimes = 2

// minHalves is the number of steps below which the newer half is no drift.
const minHalves = 16

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

// expected returns the expected time of a step: between the mean of all steps, which other
// load on the machine moves least, and that of the newer half, because responses become
// shorter or longer as the models learn.
func (t *stepTimes) expected() (time.Duration, bool) {
	if len(t.took) < minStepTimes {
		return 0, false
	}
	if len(t.took) < minHalves {
		return mean(t.took), true
	}
	return (mean(t.took) + mean(t.took[len(t.took)/2:])) / 2, true
}

func mean(all []time.Duration) time.Duration {
	var sum time.Duration
	for _, took := range all {
		sum += took
	}
	return sum / time.Duration(len(all))
}

// timeLeft estimates the time until the run is finished. It adds the rest of the
// current step or evaluation, the steps after it, and the evaluations to come,
// each with the time of the last one. A budget shortens it, but neither the
// current step or evaluation nor the evaluation after the last step. Before two steps
// have ended, only the time of the evaluation is known; ofPhase reports that.
func (s *State) timeLeft() (left time.Duration, ofPhase, known bool) {
	step, known := s.stepTimes.expected()
	if eval := s.evaluating(); !known && eval != nil {
		left, known = s.evalLeft(eval)
		return left, s.Trained() < s.Steps, known
	}
	if s.Steps == 0 || !known {
		return 0, false, false
	}
	left = step*time.Duration(max(0, s.Steps-s.Trained())) + s.evalTime()*time.Duration(s.evalsToCome())
	spent := max(0, s.Last.Sub(s.stepTimes.lastEnd))
	var least time.Duration // that a budget cannot shorten
	if eval := s.evaluating(); eval != nil {
		least, _ = s.evalLeft(eval)
		left += least
	} else if s.Trained() < s.Steps {
		left -= min(spent, step)
		least = max(0, step-spent) + s.evalTime()*time.Duration(min(1, s.evalsToCome()))
	}
	if s.Budget > 0 {
		left = min(left, max(least, s.Budget-s.Last.Sub(s.Started)))
	}
	return left, false, true
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

// evalLeft estimates the rest of a running evaluation. The more of it is done, the more the
// time spent on it counts, and the less that of the last one.
func (s *State) evalLeft(eval *Eval) (time.Duration, bool) {
	share := s.evalShare(eval)
	if share == 0 {
		return 0, false
	}
	whole := float64(max(0, s.Last.Sub(s.stepTimes.lastEnd))) / share
	if last := s.evalTime(); last > 0 {
		whole = share*share*whole + (1-share*share)*float64(last)
	}
	return time.Duration(whole * (1 - share)), true
}

// The weights of the parts of an evaluation: of the sampling of each role, and of the rest.
// Most groups are sampled before many are executed, so the groups that have ended say too
// little. Of two cores, an evaluation of the embedded models spends 0.27 of its time on the
// answers, as much on the suites, and 0.45 on the rest.
const (
	samplingWeight = 3
	endWeight      = 4
)

// evalShare returns the share of a running evaluation that is done.
func (s *State) evalShare(eval *Eval) float64 {
	if eval.Groups == 0 {
		return 0
	}
	ended := float64(min(eval.ended(), eval.Groups))
	done, all := endWeight*ended, float64(endWeight*eval.Groups)
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		if _, samples := s.Models.Stage(events.RolloutStage(role).Name); samples {
			sampled := 0
			if s.evalSampled.tag == eval.Tag {
				sampled = min(s.evalSampled.groups[role], eval.Groups)
			}
			done += samplingWeight * max(ended, float64(sampled))
			all += float64(samplingWeight * eval.Groups)
		}
	}
	return done / all
}

// evalSampled counts the groups of the newest evaluation that a role was sampled for.
type evalSampled struct {
	tag    string
	groups map[events.Role]int
}

// sampledFor notes the sampling of a role for a group.
func (s *State) sampledFor(role events.Role, plan *events.Plan) {
	if plan.Purpose != events.PurposeEval {
		return
	}
	if s.evalSampled.tag != plan.Tag || s.evalSampled.groups == nil {
		s.evalSampled = evalSampled{plan.Tag, map[events.Role]int{}}
	}
	s.evalSampled.groups[role]++
}
