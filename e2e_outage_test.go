package main

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
	"codea1/events/rundir"
)

// outages returns the outages that a run suffers while it works, and the shortest
// and the longest of them. CODEA1_OUTAGES sets another number; then they are
// longer.
func outages(t *testing.T) (n int, shortest, longest time.Duration) {
	t.Helper()
	v := os.Getenv("CODEA1_OUTAGES")
	if v == "" {
		return 2, 200 * time.Millisecond, time.Second
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("CODEA1_OUTAGES: %q is not a number of outages", v)
	}
	return n, time.Second, time.Minute
}

// survive runs every stage in a process of its own while the broker is away: when
// they start, while they wait for the run, and while they work. No process may end
// before the run does, each logs every outage once, and the results are those of
// an undisturbed run. on is not started yet.
func survive(t *testing.T, on broker, args []string, steps int, want *history) {
	wanted, shortest, longest := outages(t)
	c := &crew{t: t, dir: t.TempDir(), run: crewRun(t), bus: func(user string) []string { return on.flags(t, user) }, steady: true}
	c.endWithTest()
	for _, stage := range workers {
		c.add(stage)
	}
	page := start(t, c.dir, append([]string{"stage", "dashboard", "--run", c.run, "--dashboard-address", "127.0.0.1:0"}, c.bus(events.StageDashboard)...)...)
	everyone := func(what, text string, least int) {
		t.Helper()
		for _, m := range append(c.members, &member{args: []string{"stage", "dashboard"}, process: page}) {
			eventually(t, m.args[1]+" "+what, func() bool { return strings.Count(m.process.stderr.String(), text) >= least })
		}
	}
	everyone("waits for the bus", "trying again", 1)
	on.start(t)
	everyone("waits for the run", "waiting for the recorder", 1)
	restart(t, on, shortest)
	c.recorder(args)

	seed := rand.Uint64()
	t.Logf("outages are drawn with seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	done := 0
	c.patience += time.Duration(wanted) * longest
	every := max(1, want.events/(2*wanted))
	c.tap(func(n int, _ *events.Message) {
		if n%every != 0 || done == wanted {
			return
		}
		done++
		// As many outages are shorter as longer than the geometric mean.
		span := math.Log(float64(longest) / float64(shortest))
		length := time.Duration(float64(shortest) * math.Exp(random.Float64()*span))
		t.Logf("event %d: outage of %v", n, length.Round(time.Millisecond))
		restart(t, on, length)
	})
	if done < wanted {
		t.Errorf("%d outages, wanted %d", done, wanted)
	}
	page.signal(t, syscall.SIGINT)
	if code := page.wait(t); code != 0 {
		t.Errorf("the dashboard ended with %d", code)
	}
	for _, m := range c.members {
		text := m.process.stderr.String()
		lines := strings.Count(text, " level=WARN ") + strings.Count(text, " level=ERROR ")
		// Two for each outage, and some more on a slow machine.
		if most := 4*(wanted+2) + 10; lines > most {
			t.Errorf("%s logs %d warnings about %d outages:\n%s", m.args[1], lines, wanted+2, text)
		}
	}
	c.same(steps, want)
}

// A training uses the server of compose.yaml in place of the embedded one, outlives an
// outage of it, and says so.
func TestTrainingThroughOutage(t *testing.T) {
	onlyThorough(t, "the conformance tests of the bus have an outage")
	t.Parallel()
	want := read(t, runPath(completedRun(t), "r"), sharedSteps)
	dir, b := t.TempDir(), startNATS(t)
	p := start(t, dir, append(train("--steps", strconv.Itoa(sharedSteps), "--name", "r"), b.flags(t, operator)...)...)
	conn, err := nats.Connect(b.url(), nats.Token(busToken))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	publish(t, conn, nil) // the run begins
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the run works", func() bool {
		s, err := js.Stream(t.Context(), "codea1-r")
		return err == nil && s.CachedInfo().State.Msgs > uint64(want.events/4)
	})
	restart(t, b, 300*time.Millisecond)
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if diff := cmp.Diff(want, read(t, runPath(dir, "r"), sharedSteps), sameRun); diff != "" {
		t.Errorf("-undisturbed +with an outage:\n%s", diff)
	}
	if _, err := os.Stat(rundir.NATS(runPath(dir, "r"))); err == nil {
		t.Error("the run has a server's store of its own")
	}
	lost, back := strings.Count(p.stderr.String(), "connection lost"), strings.Count(p.stderr.String(), "reconnected")
	if lost != 1 || back != 1 {
		t.Errorf("the outage is said %d times, its end %d times", lost, back)
	}
}

// A stage waits for a bus that cannot be reached yet, and can be stopped then. It
// does not wait when the bus refuses it.
func TestStageBeforeItsBus(t *testing.T) {
	t.Parallel()
	b := startNATS(t)
	if got := refused(t, t.TempDir(), "stage", "rewards", "--run", "r", "--bus", b.url()); !strings.Contains(got, b.url()) {
		t.Errorf("a stage without the token of its server: %s", got)
	}
	for _, stage := range []string{"rewards", "recorder", "trainer-code", "dashboard"} {
		for _, address := range []string{"nats://127.0.0.1:1", "kafka://127.0.0.1:1"} {
			p := start(t, t.TempDir(), "stage", stage, "--run", "r", "--bus", address)
			eventually(t, stage+" waits", func() bool { return strings.Contains(p.stderr.String(), "trying again") })
			p.signal(t, os.Interrupt)
			if code := p.wait(t); code != 0 {
				t.Errorf("%s at %s ends with exit code %d", stage, address, code)
			}
			if n := strings.Count(p.stderr.String(), "\n"); n != 1 {
				t.Errorf("%s at %s says %d lines", stage, address, n)
			}
		}
	}
}
