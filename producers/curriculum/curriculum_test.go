package curriculum

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"codea1/events"
)

type fakeBook map[string]int

func (b fakeBook) Top(id string, k int) []events.HistoricalTest {
	if b[id] == 0 || k == 0 {
		return nil
	}
	return []events.HistoricalTest{{Call: "solve(1)", Expected: "1", Count: b[id]}}
}

func problems(n int) []events.Problem {
	out := make([]events.Problem, n)
	for i := range out {
		out[i] = events.Problem{ID: fmt.Sprintf("p%d", i), Question: "q", EntryPoint: "solve", Solution: "s", Golden: []string{"assert solve(1) == 1"}}
	}
	return out
}

func config(steps, perStep, staleness int) Config {
	return Config{Flags: Flags{
		Steps: steps, Epochs: 1, ProblemsPerStep: perStep, Seed: 7, MaxStaleness: staleness, Historical: 8,
		Answers: 2, Suites: 2, Tests: 2, Temperature: 1, CodeTokens: 8, TestTokens: 8,
	}}
}

func evaluation(n int) Evaluation {
	return func(tag string) []events.ProblemPosed {
		out := make([]events.ProblemPosed, n)
		for i, p := range problems(n) {
			out[i] = events.ProblemPosed{Problem: p, Plan: events.Plan{Purpose: events.PurposeEval, Tag: tag, Slot: i, Groups: n, Answers: 1, Temperature: 1}}
		}
		return out
	}
}

func mustNew(t interface{ Fatal(...any) }, c Config, n int, e Evaluation) *Curriculum {
	cur, err := New(c, problems(n), fakeBook{"p1": 3}, e)
	if err != nil {
		t.Fatal(err)
	}
	return cur
}

func ids(due []events.ProblemPosed) []string {
	var out []string
	for i := range due {
		out = append(out, due[i].Plan.GroupID())
	}
	return out
}

// trained makes both roles finish a step.
func trained(c *Curriculum, version int) {
	c.ObservePolicy(events.RoleCode, version)
	c.ObservePolicy(events.RoleTest, version)
}

func TestSynchronousRunInterleavesEvaluationAndTraining(t *testing.T) {
	c := config(2, 2, 0)
	cur := mustNew(t, c, 4, evaluation(1))
	expect := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, ids(cur.Due()), cmp.Transformer("nil", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
			t.Fatalf("due (-want +got):\n%s", diff)
		}
	}
	expect("e-step000000-0000")
	expect() // training waits for the evaluation
	cur.ObserveEnded("e-step000000-0000")
	expect("s000001-q0000", "s000001-q0001")
	expect()
	cur.ObservePolicy(events.RoleCode, 1)
	expect() // both roles must train a step
	cur.ObservePolicy(events.RoleTest, 1)
	expect("s000002-q0000", "s000002-q0001")
	trained(cur, 2)
	expect("e-step000002-0000")
	if cur.Finished() {
		t.Fatal("finished before the last evaluation was scored")
	}
	cur.ObserveEnded("e-step000002-0000")
	expect()
	if !cur.Finished() {
		t.Fatal("not finished after the last evaluation")
	}
}

func TestEveryEpochPosesEachProblemOnceInAnotherOrder(t *testing.T) {
	const n, perStep = 12, 3
	o := order{problems: n, perStep: perStep, seed: 7}
	var orders [2][]int
	for epoch := range 2 {
		seen := map[int]bool{}
		for step := range n / perStep {
			for slot := range perStep {
				e, p := o.at(epoch*n/perStep+step+1, slot)
				if e != epoch {
					t.Fatalf("step %d: epoch %d, want %d", step, e, epoch)
				}
				seen[p] = true
				orders[epoch] = append(orders[epoch], p)
			}
		}
		if len(seen) != n {
			t.Fatalf("epoch %d posed %d of %d problems", epoch, len(seen), n)
		}
	}
	if cmp.Equal(orders[0], orders[1]) {
		t.Fatal("both epochs have the same order")
	}
}

func TestGroupsCarryBookAndVersions(t *testing.T) {
	cur := mustNew(t, config(1, 4, 0), 4, nil)
	for _, p := range cur.Due() {
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		if got, want := len(p.Historical), map[bool]int{true: 1, false: 0}[p.Problem.ID == "p1"]; got != want {
			t.Errorf("%s: %d historical tests, want %d", p.Problem.ID, got, want)
		}
		if p.Problem.Golden != nil {
			t.Errorf("%s: golden tests attached to a training group that does not need them", p.Problem.ID)
		}
		if p.Plan.Cross || p.Plan.Probes != "" {
			t.Errorf("%s: asks for the tests of all suites on all answers or for probes, which nobody needs", p.Problem.ID)
		}
	}
}

// Rollout never runs more than MaxStaleness versions ahead of training, and
// every run ends.
func TestStalenessBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(0, 3).Draw(t, "staleness")
		steps := rapid.IntRange(1, 8).Draw(t, "steps")
		cur := mustNew(t, config(steps, 2, k), 6, nil)
		version := 0
		posed := 0
		for !cur.Finished() {
			for _, p := range cur.Due() {
				if p.Plan.Step > version+1+k {
					t.Fatalf("step %d posed at version %d with staleness %d", p.Plan.Step, version, k)
				}
				if p.Plan.CodeVersion > version {
					t.Fatalf("step %d wants version %d, only %d exists", p.Plan.Step, p.Plan.CodeVersion, version)
				}
				posed++
			}
			if version < steps {
				version++
				trained(cur, version)
			}
		}
		if posed != 2*steps {
			t.Fatalf("posed %d groups, want %d", posed, 2*steps)
		}
	})
}

// A curriculum that restarts from any prefix of the log poses exactly the groups
// that the prefix lacks of an undisturbed run.
func TestRestartPosesTheSameGroups(t *testing.T) {
	type step func(*Curriculum)
	run := func(restartAfter int) map[string]events.ProblemPosed {
		all := map[string]events.ProblemPosed{}
		var log []step
		fresh := func() *Curriculum { return mustNew(t, config(3, 2, 1), 6, evaluation(2)) }
		cur := fresh()
		happen := func(s step) {
			log = append(log, s)
			if len(log) == restartAfter {
				cur = fresh()
				for _, s := range log {
					s(cur)
				}
				return
			}
			s(cur)
		}
		version := 0
		for !cur.Finished() {
			due := cur.Due()
			for _, p := range due {
				id := p.Plan.GroupID()
				all[id] = p
				happen(func(c *Curriculum) { c.ObservePosed(id) })
			}
			for _, p := range due {
				id := p.Plan.GroupID()
				if p.Plan.Purpose == events.PurposeEval {
					happen(func(c *Curriculum) { c.ObserveEnded(id) })
				}
			}
			if len(due) == 0 && version < 3 {
				version++
				v := version
				happen(func(c *Curriculum) { trained(c, v) })
			}
		}
		return all
	}
	want := run(0)
	for at := 1; at < 20; at++ {
		if diff := cmp.Diff(want, run(at)); diff != "" {
			t.Fatalf("restart after %d events (-undisturbed +restarted):\n%s", at, diff)
		}
	}
}

func TestConfigErrorsNameTheField(t *testing.T) {
	c := config(1, 4, 0)
	if err := c.validate(3); err == nil || err.Error() != "curriculum: the problem set has 3 problems, fewer than the 4 of one step; lower --problems-per-step" {
		t.Errorf("too few problems: %v", err)
	}
	c.MaxStaleness = -1
	if err := c.validate(10); err == nil || err.Error() != "curriculum: --max-staleness is -1; want 0 to 64" {
		t.Errorf("negative staleness: %v", err)
	}
}

func TestSubsetIsPickedBySeed(t *testing.T) {
	all := problems(50)
	a, again, b := Subset(all, 10, 1), Subset(all, 10, 1), Subset(all, 10, 2)
	if diff := cmp.Diff(a, again); diff != "" {
		t.Errorf("the same seed picks other problems:\n%s", diff)
	}
	if cmp.Equal(a, b) {
		t.Error("two seeds pick the same problems")
	}
	seen := map[string]bool{}
	for _, p := range a {
		seen[p.ID] = true
	}
	if len(seen) != 10 {
		t.Errorf("%d different problems, want 10", len(seen))
	}
}

// A run without steps poses the held-out problems once, and no training problem.
func TestNoStepsOnlyEvaluates(t *testing.T) {
	c := config(0, 2, 0)
	c.Epochs = 0
	cur := mustNew(t, c, 4, evaluation(1))
	if got := strings.Join(ids(cur.Due()), " "); got != "e-step000000-0000" || cur.Finished() {
		t.Fatalf("due %s, finished %v", got, cur.Finished())
	}
	cur.ObserveEnded("e-step000000-0000")
	if due := cur.Due(); len(due) != 0 || !cur.Finished() {
		t.Errorf("due %v, finished %v", ids(due), cur.Finished())
	}
}
