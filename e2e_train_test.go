package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"codea1/events"
)

// sameRun compares the results of two runs, without their attempts.
var sameRun = cmp.Options{cmpopts.IgnoreUnexported(history{})}

// A run differs from a run of another seed. It does not differ from a second run
// of its seed, nor from one that was killed.
func TestTraining(t *testing.T) {
	t.Parallel()
	const steps = sharedSteps
	args := train("--steps", strconv.Itoa(steps), "--name", "r")
	dir := completedRun(t)
	table := sharedRun.table
	want := read(t, runPath(dir, "r"), steps)

	t.Run("ends with the table", func(t *testing.T) {
		for _, line := range []string{
			fmt.Sprintf("Run r: %d of %d steps, completed", steps, steps), "Code LLM avg@2", "Test LLM validity", "Test LLM defect-finding",
			"Mistake Book", "Events", "Groups rewarded", "Groups dropped", runPath(dir, "r"),
		} {
			if !strings.Contains(table, line) {
				t.Errorf("the table lacks %q:\n%s", line, table)
			}
		}
		if !regexp.MustCompile(`(?m)^Test LLM reach +[\d.]+% +[\d.]+% .*\nTest LLM trivial inputs +[\d.]+% +[\d.]+% `).MatchString(table) {
			t.Errorf("the table has no reach or no trivial inputs:\n%s", table)
		}
		if info, err := os.Stat(runPath(dir, "r")); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("not only its owner can read the run: %v, %v", info, err)
		}
		if len(want.started) != 1 || want.ended() != events.RunCompleted {
			t.Errorf("%d run.started and the reason %q", len(want.started), want.ended())
		}
		if len(want.Rewards) != 3*steps || len(want.Scores) == 0 || len(want.Book) == 0 {
			t.Errorf("the run says too little: %d groups rewarded, %d scored, tests of %d problems in the Mistake Book",
				len(want.Rewards), len(want.Scores), len(want.Book))
		}
		historical := 0
		for _, r := range want.Rewards {
			for _, d := range r.Deltas {
				if d.Change < 0 {
					historical++
				}
			}
		}
		t.Logf("%d events, %d historical tests passed", want.events, historical)
	})
	t.Run("is read by the other commands", func(t *testing.T) {
		if out := must(t, dir, "replay", "verify", "r"); !regexp.MustCompile(`(?m)^hash chain +intact`).MatchString(out) {
			t.Error(out)
		}
		tests := 0
		for _, of := range want.Book {
			tests += len(of)
		}
		if out := must(t, dir, "mistakes", "list", "r", "--json"); strings.Count(out, "\n") != tests {
			t.Errorf("%d tests in the Mistake Book, listed:\n%s", tests, out)
		}
	})
	t.Run("the same seed gives the same run", func(t *testing.T) {
		if !thorough() {
			t.Skip("the run that is killed has the same seed")
		}
		t.Parallel()
		dir := t.TempDir()
		must(t, dir, args...)
		if diff := cmp.Diff(want, read(t, runPath(dir, "r"), steps), sameRun); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("another seed gives another run, which a NATS client can watch", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		p := start(t, dir, append(args, "--steps", "1", "--seed", "2")...)
		seen := map[events.Type]int{}
		p.tap(t, func(_ int, m *events.Message) bool {
			e, err := m.Decode()
			if err != nil {
				t.Fatal(err)
			}
			if e.Run != "r" || e.Source == "" {
				t.Errorf("%s of run %q by %q", e.Type, e.Run, e.Source)
			}
			seen[e.Type]++
			return true
		})
		if code := p.wait(t); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		// A tap sees the events that are published after it joins. It joins during the
		// first evaluation, before the first training step.
		for typ, want := range map[events.Type]int{events.TypeGroupRewarded: 3, events.TypePolicyUpdated: 2} {
			if seen[typ] != want {
				t.Errorf("%d events %s, want %d", seen[typ], typ, want)
			}
		}
		other := read(t, runPath(dir, "r"), 1)
		for name, weights := range other.Weights {
			if weights == want.Weights[name] {
				t.Errorf("%s has the same weights", name)
			}
		}
		same := 0
		for group, r := range other.Rewards {
			if cmp.Equal(want.Rewards[group], r) {
				same++
			}
		}
		if same == len(other.Rewards) {
			t.Error("the same rewards")
		}
	})
	t.Run("is not disturbed by local clients and garbage with the names of later events", func(t *testing.T) {
		t.Parallel()
		undisturbed(t, args, runPath(dir, "r"), want, steps)
	})
	t.Run("a client with the login of the stages publishes garbage", func(t *testing.T) {
		onlyThorough(t, "the clients above have this login, too, and package eventlog tests what is quarantined")
		t.Parallel()
		garbageTrain(t, args, runPath(dir, "r"), want, steps)
	})
	t.Run("survives being killed", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		killed := killed(t, dir, args, want.events)
		got := read(t, runPath(dir, "r"), steps)
		if diff := cmp.Diff(want, got, sameRun); diff != "" {
			t.Errorf("killed %d times (-undisturbed +killed):\n%s", killed, diff)
		}
		if got.ended() != events.RunCompleted {
			t.Errorf("ended with %q", got.ended())
		}
	})
}

// killed starts a run and resumes it until it is done. Meanwhile it kills the run, where
// tests are thorough several times, each time after another number of events. It returns
// the number of kills.
func killed(t *testing.T, dir string, args []string, total int) int {
	wanted := 1
	if thorough() {
		wanted = 4
	}
	seed := rand.Uint64()
	t.Logf("the numbers of events are drawn with seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 0))
	hits := 0
	for range 2 * wanted {
		p := start(t, dir, args...)
		if hits < wanted {
			at := 1 + draw.IntN(total/(wanted+1))
			p.tap(t, func(n int, m *events.Message) bool {
				if n < at {
					return true
				}
				p.signal(t, syscallKill)
				return false
			})
		}
		if code := p.wait(t); code == 0 {
			if hits < wanted {
				t.Errorf("done after %d kills of %d", hits, wanted)
			}
			return hits
		} else if code != -1 {
			t.Fatalf("exit code %d", code)
		}
		hits++
		p.alone(t)
		args = []string{"train", "--resume", "r"}
	}
	t.Fatalf("not done after %d attempts", 2*wanted)
	return hits
}

// A training waits for all its goroutines. No other test trains under this recipe.
func TestTrainingLeavesNoGoroutineBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	var stdout, stderr buffer
	args := train("--steps", "1", "--heldout", "", "--reward", "selfplay", "--runs-dir", t.TempDir())
	if code := run(t.Context(), args, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr.String())
	}
	goleak.VerifyNone(t, before)
}
