package main

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"

	"codea1/events"
)

// chaosFaults is how many faults a run suffers; CODEA1_CHAOS_FAULTS sets
// another number.
const chaosFaults = 12

// A run whose stages are separate processes, replicas among them, ends like one
// in a single process: undisturbed, and with its processes killed and stopped
// and its broker restarted all the time.
func TestStagesInProcessesOfTheirOwn(t *testing.T) {
	faults := chaosFaults
	if v := os.Getenv("CODEA1_CHAOS_FAULTS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatalf("CODEA1_CHAOS_FAULTS: %v", err)
		}
		faults = n
	}
	steps := 3 + faults/4
	args := train("--steps", strconv.Itoa(steps))
	dir := t.TempDir()
	must(t, dir, append(args, "--name", "r")...)
	want := read(t, runPath(dir, "r"), steps)

	t.Run("undisturbed", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		b := startBroker(t)
		newCrew(t, dir, b.flags(t), args).wait()
		same(t, dir, steps, want)
	})
	t.Run("a second recorder and trainer take over", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		b := startBroker(t)
		c := newCrew(t, dir, b.flags(t), args)
		first := []*member{c.member("recorder"), c.member("trainer-code")}
		ended := make(chan struct{})
		var tapping sync.WaitGroup
		tapping.Go(func() {
			b.tap(t, ended, func(_ int, m *events.Message) {
				if m.Type == events.TypePolicyUpdated && first != nil {
					for _, m := range first {
						c.add(m.args[1], m.args[2:]...)
						m.end()
					}
					first = nil
				}
			})
		})
		c.wait()
		close(ended)
		tapping.Wait()
		if first != nil {
			t.Error("nobody has ended")
		}
		same(t, dir, steps, want)
	})
	t.Run("Kafka", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		newCrew(t, dir, kafkaFlags(t), args).wait()
		same(t, dir, steps, want)
	})
	t.Run("chaos", func(t *testing.T) {
		t.Parallel()
		chaos(t, args, faults, steps, want)
	})
}

// same compares a completed run with another one's history.
func same(t *testing.T, dir string, steps int, want *history) {
	t.Helper()
	got := read(t, runPath(dir, "r"), steps)
	if diff := cmp.Diff(want, got, sameRun); diff != "" {
		t.Errorf("-one process +many:\n%s", diff)
	}
	if got.ended() != events.RunCompleted {
		t.Errorf("ended with %q", got.ended())
	}
}

func chaos(t *testing.T, args []string, wanted, steps int, want *history) {
	seed := rand.Uint64()
	t.Logf("faults are drawn with seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	b := startBroker(t)
	ended := make(chan struct{})
	var tapping sync.WaitGroup
	c := newCrew(t, dir, b.flags(t), args)
	counts := map[string]int{}
	tapping.Go(func() {
		faults := 0
		// Faults are spread over the events of the run, so that it meets all of
		// them however fast it is.
		every := max(1, want.events/(2*wanted))
		b.tap(t, ended, func(n int, _ *events.Message) {
			if n%every != 0 || faults == wanted {
				return
			}
			faults++
			m := c.members[random.IntN(len(c.members))]
			switch draw := random.IntN(20); {
			case draw == 0:
				b.restart(t)
				counts["broker restarts"]++
			case draw < 7:
				// Up to twice what a lease or a claim lasts.
				m.signal(syscall.SIGSTOP)
				time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
				m.signal(syscall.SIGCONT)
				counts["SIGSTOP "+m.args[1]]++
			default:
				m.signal(syscall.SIGKILL)
				counts["SIGKILL "+m.args[1]]++
			}
		})
	})
	c.wait()
	close(ended)
	tapping.Wait()
	faults := 0
	for _, n := range counts {
		faults += n
	}
	t.Logf("%d faults: %v", faults, counts)
	if faults < wanted {
		t.Errorf("%d faults, wanted %d", faults, wanted)
	}
	same(t, dir, steps, want)
}

// kafkaFlags join the broker at CODEA1_KAFKA, or else one in this process.
func kafkaFlags(t *testing.T) []string {
	t.Helper()
	address := os.Getenv("CODEA1_KAFKA")
	if address == "" {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cluster.Close)
		address = cluster.ListenAddrs()[0]
	}
	return []string{"--bus", kafkaScheme + address}
}
