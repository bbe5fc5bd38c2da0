package main

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/consumers/rewards"
	"codea1/events"
	"codea1/gpuworker/checkpoint/objects/s3test"
)

// chaosFaults returns the number of faults that a run suffers;
// CODEA1_CHAOS_FAULTS sets another number.
func chaosFaults(t *testing.T) int {
	t.Helper()
	v := os.Getenv("CODEA1_CHAOS_FAULTS")
	switch {
	case v != "":
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatalf("CODEA1_CHAOS_FAULTS: %v", err)
		}
		return n
	case thorough():
		return 12
	}
	return 4
}

// A run whose stages are separate processes, replicas among them, gives the same
// results as a run in one process: undisturbed, and while its processes are
// killed and stopped, its recorder and a trainer are replaced for good, its broker
// is restarted, and a stage's login on NATS is used to forge events of the others. The
// processes of the last case share no directory: their checkpoints are in an S3 store,
// which is killed too. With the stage shadow, which is killed as well, the run
// of many processes has the results of one without this stage.
func TestStagesInProcessesOfTheirOwn(t *testing.T) {
	faults := chaosFaults(t)
	steps, dir := sharedSteps, completedRun(t)
	if faults > 4 {
		steps, dir = 3+faults/4, t.TempDir()
		must(t, dir, train("--steps", strconv.Itoa(steps), "--name", "r")...)
	}
	args := train("--steps", strconv.Itoa(steps))
	want := read(t, runPath(dir, "r"), steps)

	for name, start := range map[string]func(*testing.T) broker{
		"NATS":  func(t *testing.T) broker { return startGuardedNATS(t) },
		"Kafka": func(t *testing.T) broker { return startKafka(t) },
	} {
		t.Run(name+"/undisturbed", func(t *testing.T) {
			if !thorough() {
				t.Skip("NATS/chaos runs the same stages: CODEA1_TEST_THOROUGH=1 runs them undisturbed as well")
			}
			t.Parallel()
			c := newCrew(t, t.TempDir(), start(t), args)
			c.wait()
			c.same(steps, want)
		})
		t.Run(name+"/outages", func(t *testing.T) {
			if !thorough() && os.Getenv("CODEA1_OUTAGES") == "" && (name != "Kafka" || os.Getenv("CODEA1_KAFKA") == "") {
				t.Skip("chaos and the conformance tests of the bus have outages: CODEA1_TEST_THOROUGH=1 adds these")
			}
			t.Parallel()
			on := start(t)
			on.kill(t)
			survive(t, on, args, steps, want)
		})
		t.Run(name+"/chaos", func(t *testing.T) {
			if name == "Kafka" && !thorough() {
				t.Skip("the faults are the same as on NATS: CODEA1_TEST_THOROUGH=1 repeats them")
			}
			t.Parallel()
			chaos(t, start(t), args, faults, steps, want)
		})
	}
}

// same compares the completed run with the history of another one.
func (c *crew) same(steps int, want *history) {
	c.t.Helper()
	got := read(c.t, runPath(c.dir, c.run), steps)
	if diff := cmp.Diff(want, got, sameRun); diff != "" {
		c.t.Errorf("-one process +many:\n%s", diff)
	}
	if got.ended() != events.RunCompleted {
		c.t.Errorf("ended with %q", got.ended())
	}
}

func chaos(t *testing.T, on broker, args []string, wanted, steps int, want *history) {
	seed := rand.Uint64()
	t.Logf("faults are drawn with seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var store *s3test.Server
	b, ok := on.(*natsBroker)
	if ok {
		store = s3test.New(t).Start()
	}
	c := newCrewWith(t, t.TempDir(), on, store, append(slices.Clone(args), "--shadow", rewards.NameSelfPlay))
	shadow := c.add(events.StageShadow)
	if ok {
		b.disturb(t, c.run)
	}
	members := slices.Clone(c.members)
	faults, counts := 0, map[string]int{}
	// Faults are spread over the events of the run, so that a fast run has all of
	// them as well.
	every := max(1, want.events/(2*wanted))
	first := []*member{c.member("recorder"), c.member("trainer-code")}
	c.tap(func(n int, e *events.Message) {
		if e.Type == events.TypePolicyUpdated && first != nil {
			for _, m := range first {
				c.add(m.args[1], m.args[2:]...)
				m.end()
			}
			shadow.signal(syscall.SIGKILL)
			members = slices.DeleteFunc(slices.Clone(c.members), func(m *member) bool { return slices.Contains(first, m) })
			first = nil
		}
		if n%every != 0 || faults == wanted {
			return
		}
		faults++
		m := members[random.IntN(len(members))]
		switch draw := random.IntN(20); {
		case draw == 0 || faults == 1: // at least one restart
			restart(t, on, 0)
			counts["broker restarts"]++
		case store != nil && (draw == 1 || faults == 2):
			store.Kill()
			store.Start()
			counts["store restarts"]++
		case draw < 7:
			// Up to twice the time of a lease or of a claim on an event.
			m.signal(syscall.SIGSTOP)
			time.AfterFunc(time.Duration(random.IntN(2000))*time.Millisecond, func() { m.signal(syscall.SIGCONT) })
			counts["SIGSTOP "+m.args[1]]++
		default:
			m.signal(syscall.SIGKILL)
			counts["SIGKILL "+m.args[1]]++
		}
	})
	t.Logf("%d faults: %v", faults, counts)
	if faults < wanted {
		t.Errorf("%d faults, wanted %d", faults, wanted)
	}
	if first != nil {
		t.Error("no process was replaced for good")
	}
	c.same(steps, want)
	if n := read(t, runPath(c.dir, c.run), steps).shadowed; n > len(want.Rewards) {
		t.Errorf("%d events have the shadow rewards of %d groups", n, len(want.Rewards))
	} else {
		t.Logf("%d groups of %d have shadow rewards", n, len(want.Rewards))
	}
}
