package dashboard

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"codea1/events"
)

// TestTimeLeftOfARecordedRun replays the times of a recorded run and checks the
// estimates of its end.
func TestTimeLeftOfARecordedRun(t *testing.T) {
	recorded, err := os.ReadFile("testdata/times")
	if err != nil {
		t.Fatal(err)
	}
	const steps, evalGroups = 120, 10
	s, state := &script{at: noon}, NewState()
	state.Apply(s.started(1, steps))
	var estimates []time.Duration // of the whole run, after each step and tenth of the last evaluation
	for line := range strings.Lines(string(recorded)) {
		var ms, step, slot int
		var what string
		if n, _ := fmt.Sscan(line, &ms, &what, &step, &slot); n < 2 {
			continue
		}
		s.at = noon.Add(time.Duration(ms) * time.Millisecond)
		switch what {
		case "scored":
			state.Apply(s.scored(fmt.Sprint("e", step), step, slot, evalGroups, events.EvalScored{}))
		case "trained":
			state.Apply(s.rewarded(step, 0, 1, 0.5, 0.5))
			state.Apply(s.updated(events.RoleCode, step))
			state.Apply(s.updated(events.RoleTest, step))
		case "finished":
			state.Apply(s.finished(steps, events.RunCompleted))
		}
		if p := state.Progress(); p.Known && !p.OfPhase {
			estimates = append(estimates, s.at.Sub(noon)+p.Left)
		}
	}
	took := s.at.Sub(noon)
	if n := len(estimates); n < steps {
		t.Fatalf("the time left was known %d times", n)
	}
	for i, whole := range estimates {
		if off := math.Abs(whole.Seconds()/took.Seconds() - 1); off > 0.26 || i > steps/2 && off > 0.2 || i > steps*3/4 && off > 0.08 {
			t.Errorf("estimate %d: %v for a run of %v", i, whole.Round(time.Second), took.Round(time.Second))
		}
		if i > 0 && math.Abs((whole-estimates[i-1]).Seconds()) > 0.07*took.Seconds() {
			t.Errorf("estimate %d jumps from %v to %v", i, estimates[i-1].Round(time.Second), whole.Round(time.Second))
		}
	}
}

// TestTimeLeftOfASteadyRun checks that the estimate is exact to the second if all
// steps take the same time, all evaluations do too, and the distance between
// evaluations is known.
func TestTimeLeftOfASteadyRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.IntRange(4, 60).Draw(t, "steps")
		every := rapid.IntRange(0, 10).Draw(t, "steps between evaluations")
		step := time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds a step")) * time.Second
		eval := time.Duration(rapid.IntRange(0, 100).Draw(t, "seconds a group")) * time.Second
		groups := rapid.IntRange(1, 4).Draw(t, "groups of an evaluation")

		type estimate struct {
			at   time.Time
			left time.Duration
			step int
		}
		var estimates []estimate
		s, state := &script{at: noon}, NewState()
		look := func() {
			if p := state.Progress(); p.Known && !p.OfPhase {
				estimates = append(estimates, estimate{s.at, p.Left, state.Trained()})
			}
		}
		evaluate := func(after int) {
			for slot := range groups {
				s.at = s.at.Add(eval)
				state.Apply(s.scored(fmt.Sprint("e", after), after, slot, groups, events.EvalScored{}))
				look()
			}
		}
		state.Apply(s.started(1, steps))
		evaluate(0)
		for i := 1; i <= steps; i++ {
			s.at = s.at.Add(step / 2)
			state.Apply(s.rewarded(i, 0, 1, 0.5, 0.5))
			look()
			s.at = s.at.Add(step - step/2)
			state.Apply(s.updated(events.RoleCode, i))
			state.Apply(s.updated(events.RoleTest, i))
			// No estimate here: an evaluation is due, but its first event is missing.
			if due := i == steps || every > 0 && i%every == 0; due {
				evaluate(i)
			} else {
				look()
			}
		}
		if len(estimates) == 0 {
			t.Fatal("the time left was never known")
		}
		for _, g := range estimates {
			known := every == 0 || every >= steps || g.step > every
			if off := (g.at.Add(g.left).Sub(s.at)).Abs(); known && off > time.Second {
				t.Fatalf("after %d steps %v left, and it took %v", g.step, g.left, s.at.Sub(g.at))
			}
		}
	})
}

// TestTimeLeftForgetsAPause checks that the time between two attempts does not
// count as the time of a step.
func TestTimeLeftForgetsAPause(t *testing.T) {
	s, state := &script{at: noon}, NewState()
	train := func(from, to int) {
		for i := from; i <= to; i++ {
			s.at = s.at.Add(10 * time.Second)
			state.Apply(s.rewarded(i, 0, 1, 0.5, 0.5))
			state.Apply(s.updated(events.RoleCode, i))
			state.Apply(s.updated(events.RoleTest, i))
		}
	}
	state.Apply(s.started(1, 10))
	train(1, 4)
	if p := state.Progress(); !p.Known || p.Left != time.Minute {
		t.Errorf("have %v (%v), want 6 steps of 10 s", p.Left, p.Known)
	}
	s.at = s.at.Add(time.Hour)
	state.Apply(s.started(2, 10))
	if p := state.Progress(); p.Known {
		t.Errorf("have %v without a step of this attempt", p.Left)
	}
	train(5, 7)
	if p := state.Progress(); p.Left != 30*time.Second {
		t.Errorf("have %v, want 3 steps of 10 s", p.Left)
	}
}

// TestTimeLeftOfABudget checks a run that its budget ends before its last step. It
// ends with the budget, but not before the current step and the evaluation after
// it.
func TestTimeLeftOfABudget(t *testing.T) {
	s, state := &script{at: noon}, NewState()
	state.Budget = 3 * time.Minute
	check := func(what string, want time.Duration) {
		t.Helper()
		if p := state.Progress(); !p.Known || p.Left != want {
			t.Errorf("%s: %v left (%v), want %v", what, p.Left, p.Known, want)
		}
	}
	evaluate := func(step int) {
		s.at = s.at.Add(20 * time.Second)
		state.Apply(s.scored(fmt.Sprint("e", step), step, 0, 1, events.EvalScored{}))
	}
	train := func(from, to int) {
		for i := from; i <= to; i++ {
			s.at = s.at.Add(10 * time.Second)
			state.Apply(s.rewarded(i, 0, 1, 0.5, 0.5))
			state.Apply(s.updated(events.RoleCode, i))
			state.Apply(s.updated(events.RoleTest, i))
		}
	}
	state.Apply(s.started(1, 100))
	evaluate(0)
	train(1, 5)
	check("in the middle", 110*time.Second)
	train(6, 15)
	check("one step before the end", 30*time.Second)
	evaluate(15)
	state.Apply(s.finished(15, events.RunStopped))

	// The evaluation at the end of the budget does not set the distance.
	state.Budget = 0
	state.Apply(s.started(2, 100))
	train(16, 20)
	check("resumed", (80*10+20)*time.Second)
}

// simulated is a run on a machine whose speed is not steady: the work of a step drifts, and
// other work on the machine makes some steps slow. An evaluation is sampled before most of it is
// executed.
type simulated struct {
	steps, groups              int
	evaluates                  bool
	step, eval, drift, unquiet float64 // seconds, and shares of them
	random                     *rand.Rand
}

// play plays the run and returns the shares of the updates after the first tenth of its
// time that have a time left, and of those with one that is right within a quarter.
func (r *simulated) play() (known, right float64) {
	type update struct {
		at   time.Time
		left time.Duration
		end  *time.Time // of the phase or of the run
		says bool
	}
	var updates []update
	var end time.Time
	phases := []*time.Time{}
	s, state := &script{at: noon}, NewState()
	pass := func(seconds float64) { s.at = s.at.Add(time.Duration(seconds * float64(time.Second))) }
	look := func() {
		p, to := state.Progress(), &end
		if p.OfPhase {
			to = phases[len(phases)-1]
		}
		updates = append(updates, update{s.at, p.Left, to, p.Known})
	}
	evaluate := func(after int) {
		phases = append(phases, new(time.Time))
		tag := fmt.Sprint("e", after)
		plan := events.Plan{Purpose: events.PurposeEval, Step: after, Tag: tag, Groups: r.groups, Answers: 1}
		sampled, ended := 0, 0
		for ended < r.groups {
			pass(r.eval / float64(2*r.groups) * (0.7 + 0.6*r.random.Float64()))
			// Of three parts of the work, two are mostly done when half of the time has passed.
			if sampled < r.groups && (ended >= sampled || r.random.Float64() < 0.85) {
				state.Apply(s.event(fmt.Sprint("e-", tag, "-", sampled), &events.CodeSampled{Posed: events.ProblemPosed{Plan: plan}}))
				state.Apply(s.event(fmt.Sprint("e-", tag, "-", sampled), &events.TestsSampled{Posed: events.ProblemPosed{Plan: plan}}))
				sampled++
			} else {
				state.Apply(s.scored(tag, after, ended, r.groups, events.EvalScored{}))
				ended++
			}
			look()
		}
		*phases[len(phases)-1] = s.at
	}
	state.Apply(s.started(1, r.steps))
	if r.evaluates {
		evaluate(0)
	}
	slow := 1.0
	for i := 1; i <= r.steps; i++ {
		if r.random.IntN(12) == 0 {
			slow = 1 + r.unquiet*r.random.Float64()
		}
		took := r.step * slow * (1 + r.drift*float64(i)/float64(r.steps)) * (0.9 + 0.2*r.random.Float64())
		pass(took / 2)
		state.Apply(s.rewarded(i, 0, 1, 0.5, 0.5))
		look()
		pass(took / 2)
		state.Apply(s.updated(events.RoleCode, i))
		state.Apply(s.updated(events.RoleTest, i))
		if i < r.steps {
			look()
		}
	}
	if r.evaluates {
		evaluate(r.steps)
	}
	end = s.at
	count, says, holds := 0.0, 0.0, 0.0
	for _, u := range updates {
		if u.at.Sub(noon) < end.Sub(noon)/10 {
			continue
		}
		count++
		if !u.says {
			continue
		}
		says++
		if really := u.end.Sub(u.at); (u.left - really).Abs() <= max(time.Second, really/4) {
			holds++
		}
	}
	return says / count, holds / says
}

// After the first tenth of a run, nearly all updates have a time left that is right within a
// quarter, also if the work of a step drifts by up to a third and the machine has other work at
// times. In 100 runs with these seeds, 95% of the updates were right.
func TestTimeLeftOfDriftingRuns(t *testing.T) {
	var shares []float64
	sum := 0.0
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 7))
		r := &simulated{
			steps: 20 + random.IntN(180), groups: 20 + random.IntN(80), evaluates: random.IntN(2) == 1,
			step: 0.5 + 60*random.Float64(), drift: 0.33 * (2*random.Float64() - 1), unquiet: 0.3 * random.Float64(), random: random,
		}
		r.eval = r.step * float64(r.steps) * (0.05 + 0.35*random.Float64())
		known, right := r.play()
		if known < 0.95 {
			t.Errorf("seed %d: %.2f of the updates have a time left", seed, known)
		}
		shares, sum = append(shares, right), sum+right
	}
	slices.Sort(shares)
	if mean, low := sum/float64(len(shares)), shares[len(shares)/20]; mean < 0.93 || low < 0.75 {
		t.Errorf("%.3f of the updates are right, and less than %.2f in one run of twenty", mean, low)
	}
}
