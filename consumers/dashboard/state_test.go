package dashboard

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"codea1/events"
)

func TestGoldenRunTrainsOneRole(t *testing.T) {
	s, state := &script{at: noon}, NewState()
	begin := s.started(1, 2)
	begin.Payload.(*events.RunStarted).Models = events.ModelsCode
	state.Apply(begin)
	e := s.rewarded(1, 0, 1, 1, 0)
	g := e.Payload.(*events.GroupRewarded)
	g.Plan.Suites, g.Test = 0, [][]events.SuiteReward{{}, {}}
	state.Apply(e)
	state.Apply(s.updated(events.RoleCode, 1))
	if state.Trained() != 1 {
		t.Errorf("%d steps trained, want 1: there is no Test LLM to wait for", state.Trained())
	}
	if _, p := state.Series.Last(); !math.IsNaN(p.means[rewardTest].Value()) {
		t.Errorf("a mean of no suites is %v", p.means[rewardTest].Value())
	}
	for _, view := range state.Snapshot().Stages {
		if view.Stage == events.StageRolloutTest || view.Stage == events.StageTrainerTest {
			t.Errorf("the page shows the stage %s", view.Stage)
		}
	}
	if table := Table(state, "runs/r1"); strings.Contains(table, "Test LLM") || strings.Contains(table, "Mistake Book") {
		t.Errorf("the table has figures of a Test LLM:\n%s", table)
	}
}

func TestHeartbeats(t *testing.T) {
	s, state := &script{at: noon}, NewState()
	state.Apply(s.beat("execution-0", 1, 100, 7))
	s.at = s.at.Add(4 * time.Second)
	state.Apply(s.beat("execution-0", 2, 120, 3))
	if got := state.Replicas["execution-0"]; got.PerSecond != 5 || got.Lag != 3 || got.Stage != "execution" {
		t.Errorf("have %+v, want 20 events in 4 s and a lag of 3", got)
	}
	s.at = s.at.Add(4 * time.Second)
	state.Apply(s.beat("execution-0", 1, 5, 0)) // the process was started again
	if got := state.Replicas["execution-0"]; got.PerSecond != 0 || got.Handled != 5 {
		t.Errorf("have %+v, want no rate across a restart", got)
	}
	for i := range 2 * maxReplicas {
		s.at = s.at.Add(time.Second)
		state.Apply(s.beat(fmt.Sprintf("rewards-%d", i), 1, 1, 0))
	}
	if len(state.Replicas) != maxReplicas {
		t.Errorf("%d replicas are kept, want %d", len(state.Replicas), maxReplicas)
	}
	if _, ok := state.Replicas[fmt.Sprintf("rewards-%d", 2*maxReplicas-1)]; !ok {
		t.Error("the newest replica is not kept")
	}
}

// TestStateIsBounded applies events that would let a state grow without bounds.
func TestStateIsBounded(t *testing.T) {
	s, state := &script{at: noon}, NewState()
	state.Apply(s.started(1, 100_000))
	for i := range 6000 {
		s.at = s.at.Add(time.Second)
		state.Apply(s.dropped(events.PurposeTrain, fmt.Sprintf("s%06d-q0000", i+1), i+1, 0, 1, events.DropRetries))
		state.Apply(s.scored(fmt.Sprintf("t%d", i), i, 0, 1, events.EvalScored{Correct: []bool{true}}))
	}
	if n := len(state.RecentDrops); n != maxRecentDrops {
		t.Errorf("%d drops are kept", n)
	}
	if last := state.RecentDrops[maxRecentDrops-1].Group; last != "s006000-q0000" {
		t.Errorf("the newest drop kept is %s", last)
	}
	if n := len(state.evals); n != maxEvals || state.Before() == nil || state.After().Tag != "t5999" {
		t.Errorf("%d evaluations are kept, before %v, after %v", n, state.Before(), state.After())
	}
	if n := len(state.endedGroups); n > maxOpenSteps {
		t.Errorf("%d open steps are kept", n)
	}
	if n := len(state.Series.points); n > maxPoints {
		t.Errorf("%d points are kept", n)
	}
	out, err := json.Marshal(state.Snapshot())
	if err != nil || len(out) > 256<<10 {
		t.Errorf("a snapshot of %d bytes, %v", len(out), err)
	}
}

// TestSeriesLosesNothing checks that merging steps keeps the sums over all
// groups, and that the number of points follows from the last step.
func TestSeriesLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newSeries()
		groups, sum, drops := 0, 0.0, 0
		last := 0
		for range rapid.IntRange(1, 60).Draw(t, "groups") {
			step := rapid.IntRange(1, 6*maxPoints).Draw(t, "step")
			last = max(last, step)
			if rapid.IntRange(0, 4).Draw(t, "dropped") == 0 {
				h.drop(step)
				drops++
				continue
			}
			reward := float64(rapid.IntRange(0, 8).Draw(t, "reward")) / 8
			h.reward(&events.GroupRewarded{
				Plan: events.Plan{Step: step}, Code: []events.AnswerReward{{Reward: reward}}, Test: [][]events.SuiteReward{{}},
			}, 1, 0, 1)
			groups++
			sum += reward
		}
		var all Point
		for _, p := range h.points {
			all.merge(p)
		}
		if all.Groups != groups || all.Dropped != drops || all.means[rewardCode].sum != sum || all.Entered != groups {
			t.Fatalf("have %+v, want %d groups, %d drops, a sum of %v", all, groups, drops, sum)
		}
		if n := len(h.points); n > maxPoints || n != (last-1)/h.stride+1 {
			t.Fatalf("%d points of %d steps each for %d steps", n, h.stride, last)
		}
	})
}

// TestLastHistSkipsStepsWithoutHistoricalTests checks that the share of historical
// tests passed stays known after a step without any.
func TestLastHistSkipsStepsWithoutHistoricalTests(t *testing.T) {
	h := newSeries()
	if got := h.LastHist().Value(); !math.IsNaN(got) {
		t.Errorf("have %v before there is any", got)
	}
	reward := func(step int, pass, fail float64) {
		h.reward(&events.GroupRewarded{
			Plan: events.Plan{Step: step}, Code: []events.AnswerReward{{Loads: true}},
			Test: [][]events.SuiteReward{{{PassHist: pass, FailHist: fail}}},
		}, 0, 0, 0)
	}
	reward(1, 0.25, 0.75)
	reward(2, 0, 1)
	reward(3, 0, 0)
	if got := h.LastHist().Value(); got != 0 {
		t.Errorf("have %v, want the 0 of step 2", got)
	}
}

func TestSeriesOfUpdates(t *testing.T) {
	s, state := &script{at: noon}, NewState()
	for step := 1; step <= 2*maxPoints; step++ {
		state.Apply(s.updated(events.RoleCode, step))
		if step <= maxPoints {
			state.Apply(s.updated(events.RoleTest, step))
		}
	}
	points := state.Series.points
	if len(points) != maxPoints || points[0].means[entropyCode].n != 2 || points[maxPoints-1].means[klTest].n != 0 {
		t.Errorf("%d points, the first of %d updates, the last of %d of the Test LLM",
			len(points), points[0].means[entropyCode].n, points[maxPoints-1].means[klTest].n)
	}
	if got := points[0].means[gradNormTest].Value(); got != 0.5 {
		t.Errorf("a gradient norm of %v, want 0.5", got)
	}
	data := state.Series.view(-1)
	for _, name := range measureNames {
		if n := len(data[name].([]number)); n != maxPoints {
			t.Errorf("the column %s has %d rows", name, n)
		}
	}
	if len(data["step"].([]int)) != maxPoints || len(data["dropped"].([]int)) != maxPoints {
		t.Error("the columns differ in length")
	}
	// An event changes one point, so the next part of the series has that one.
	clock := state.Series.clock
	state.Apply(s.updated(events.RoleTest, 7))
	if part := state.Series.view(clock); part["from"] != 3 || len(part["step"].([]int)) < 1 || part["step"].([]int)[0] != 7 {
		t.Errorf("the part begins at point %v, step %v", part["from"], part["step"])
	}
	if part := state.Series.view(state.Series.clock); len(part["step"].([]int)) != 0 {
		t.Errorf("%v points have changed since the newest event", part["step"])
	}
}

// TestBookFollowsTheRule compares sizes with a map that applies the rule of the
// Mistake Book delta by delta.
func TestBookFollowsTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, model := newBook(), map[string]int{}
		for range rapid.IntRange(1, 30).Draw(t, "groups") {
			problem := rapid.SampledFrom([]string{"p", "pp"}).Draw(t, "problem")
			var deltas []events.BookDelta
			for range rapid.IntRange(0, 4).Draw(t, "deltas") {
				d := events.BookDelta{
					Call:     rapid.SampledFrom([]string{"f", "pf"}).Draw(t, "call"),
					Expected: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "expected"),
					Change:   rapid.SampledFrom([]int{-2, -1, 1, 2}).Draw(t, "change"),
				}
				deltas = append(deltas, d)
				key := problem + "|" + d.Call + "|" + d.Expected
				if model[key] += d.Change; model[key] <= 0 {
					delete(model, key)
				}
			}
			book.apply("s000001-q0000", 1, problem, deltas)
			if book.Size() != len(model) || book.Entered-book.Left != book.Size() {
				t.Fatalf("size %d (%d entered, %d left), want %d", book.Size(), book.Entered, book.Left, len(model))
			}
		}
	})
}

func TestRate(t *testing.T) {
	var r rate
	for i := range 60 { // 2 events a second for a minute
		r.add(noon.Add(time.Duration(i) * time.Second / 2))
		r.add(noon.Add(time.Duration(i) * time.Second))
	}
	r.add(noon.Add(-time.Hour)) // too old to count
	if got := r.perSecond(); got < 1 || got > 2.1 {
		t.Errorf("have %v events per second", got)
	}
	var young rate
	young.add(noon)
	young.add(noon)
	if got := young.perSecond(); got != 2 {
		t.Errorf("two events in the first second: have %v", got)
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 0.5: "0.5", 1.0 / 3: "0.33333", 1e-6: "1e-06", 123456789: "1.2346e+08",
		math.Inf(1): "null", math.Inf(-1): "null",
	} {
		if got, err := json.Marshal(number(x)); err != nil || string(got) != want {
			t.Errorf("%v: have %s, %v, want %s", x, got, err, want)
		}
	}
	if got, _ := json.Marshal(number(math.NaN())); string(got) != "null" {
		t.Errorf("NaN: have %s", got)
	}
}

func TestTableText(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: have %s", n, got)
		}
	}
	for d, want := range map[time.Duration]string{
		1400 * time.Millisecond: "1s", 59 * time.Second: "59s", 65 * time.Second: "1m05s", 2*time.Hour + 3*time.Minute: "2h03m",
	} {
		if got := duration(d); got != want {
			t.Errorf("%v: have %s", d, got)
		}
	}
}

// TestHeartbeatsOfSingleStages checks the views of the recorder and of a trainer that
// another process has taken over, and that the busiest stage is named.
func TestHeartbeatsOfSingleStages(t *testing.T) {
	s, state := &script{at: noon}, NewState()
	state.Apply(s.started(1, 4))
	state.Apply(s.updated(events.RoleCode, 1))
	state.Apply(s.updated(events.RoleTest, 1))
	for slot := range 5 { // of step 2
		state.Apply(s.dropped(events.PurposeTrain, fmt.Sprintf("s000002-q%04d", slot), 2, slot, 5, events.DropRetries))
	}
	beat := func(stage, source string, handled, pending int64, busy float64) {
		s.at = s.at.Add(time.Second)
		e := s.beat(source, 1, handled, pending)
		e.Payload.(*events.StageHeartbeat).Stage, e.Payload.(*events.StageHeartbeat).Busy = stage, busy
		state.Apply(e)
	}
	beat(events.StageTrainerTest, "trainer-test-a", 90, 0, 0.25)
	beat(events.StageTrainerTest, "trainer-test-b", 7, 0, 0.75)
	beat(events.StageRecorder, "recorder-a", 900, 6, 0.125)
	got := state.Snapshot()
	for _, v := range got.Stages {
		switch v.Stage {
		case events.StageTrainerTest: // 2 of the 5 groups are in training
			if v.Replicas != 1 || v.Busy != 0.75 || v.InFlight != 2 || v.Lag != 3 {
				t.Errorf("have %+v, want the trainer that took over, and 3 groups that wait", v)
			}
		case events.StageRecorder:
			if v.Replicas != 1 || v.Busy != 0.125 || v.InFlight != 2 || v.Lag != 6 || v.Handled != state.Total() {
				t.Errorf("have %+v, want the heartbeat of the recorder", v)
			}
		}
	}
	if want := "trainer-test is the busiest stage now: 75%, 2 in flight, 0 wait"; got.Binding.Now != want {
		t.Errorf("have %q, want %q", got.Binding.Now, want)
	}
	state.Apply(s.finished(1, events.RunStopped))
	if now := state.Snapshot().Binding.Now; now != "" {
		t.Errorf("after the end of the attempt: %q", now)
	}
}

// TestStagesSumTheirReplicas checks the order of the stages, the sums over their
// replicas, and that an unknown stage has replicas only.
func TestStagesSumTheirReplicas(t *testing.T) {
	s, state := &script{at: noon}, NewState()
	for n := 1; n <= 2; n++ {
		state.Apply(s.beat("rewards-0", n, int64(10*n), 1))
		state.Apply(s.beat("unknown-0", n, 1, 9))
		state.Apply(s.beat("execution-1", n, int64(8*n), 7))
		s.at = s.at.Add(time.Second)
		state.Apply(s.beat("execution-0", n, int64(4*n), 5))
		s.at = s.at.Add(3 * time.Second)
	}
	got := state.Snapshot()
	var replicas []string
	for _, r := range got.Replicas {
		replicas = append(replicas, r.Name)
	}
	if diff := cmp.Diff([]string{"execution-0", "execution-1", "rewards-0", "unknown-0"}, replicas); diff != "" {
		t.Error(diff)
	}
	stages := events.ModelsBoth.Stages()
	if n := len(got.Stages); n != len(stages) {
		t.Fatalf("%d stages, want %d", n, len(stages))
	}
	for i, stage := range got.Stages {
		want := stageView{Stage: stages[i].Name, Consumes: stages[i].Consumes, Makes: stages[i].Makes}
		switch stage.Stage {
		case events.StageExecution:
			want.Replicas, want.InFlight, want.PerSecond, want.Lag, want.Handled, want.Busy = 2, 4, 3, 5, 24, 0.5
		case events.StageRewards:
			want.Replicas, want.InFlight, want.PerSecond, want.Lag, want.Handled, want.Busy = 1, 2, 2.5, 1, 20, 0.5
		case events.StageRecorder: // has sent no heartbeat: its figures are those of the events
			want.Handled, want.PerSecond = 8, number(state.PerSecond())
		}
		want.Role = stages[i].Role
		if diff := cmp.Diff(want, stage); diff != "" {
			t.Errorf("%s: %s", stage.Stage, diff)
		}
	}
}

// The attempts of a fork count from its own first one: those before it, and the event that made
// the fork, are not its own.
func TestAttemptsOfAFork(t *testing.T) {
	s, state := &script{at: noon}, NewState()
	for _, c := range []struct {
		attempt int
		forks   bool
		want    string
	}{{1, false, ""}, {2, false, "attempt 2"}, {3, true, ""}, {4, false, ""}, {5, false, "attempt 2"}, {6, true, ""}, {7, false, ""}} {
		e := s.started(c.attempt, 4)
		if c.forks {
			e.Payload.(*events.RunStarted).Origin = &events.Origin{Run: "r0", Events: 9, Chain: strings.Repeat("0", 64)}
		}
		state.Apply(e)
		if line := headline(state); strings.Contains(line, "attempt") != (c.want != "") || !strings.Contains(line, c.want) {
			t.Errorf("attempt %d in the log: %s", c.attempt, line)
		}
	}
	if snapshot := state.Snapshot(); snapshot.Attempt != 7 || snapshot.Inherited != 6 {
		t.Errorf("attempt %d, %d of them inherited", snapshot.Attempt, snapshot.Inherited)
	}
}
