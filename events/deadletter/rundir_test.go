package deadletter_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/natsbus"
	"codea1/events/rundir"
)

// The dead letters of a run with an embedded server are listed while the server runs
// and afterwards, from the run directory.
func TestDeadLettersOfARunDirectory(t *testing.T) {
	runs := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	store := rundir.NATS(filepath.Join(runs, "night"))
	server, err := natsbus.StartServer(natsbus.ServerConfig{StoreDir: store, Run: "night", SyncInterval: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	bus, err := natsbus.Connect(ctx, natsbus.Config{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	if err := bus.Publish(ctx, eventstest.Encode(eventstest.Posed("night", 1, 7))); err != nil {
		t.Fatal(err)
	}
	c, err := bus.Consume(ctx, events.ConsumeConfig{Run: "night", Name: "worker", Types: []events.Type{events.TypeProblemPosed}, AckWait: time.Minute, MaxInFlight: 1})
	if err != nil {
		t.Fatal(err)
	}
	deliveries, err := c.Fetch(ctx, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := deliveries[0].DeadLetter(ctx, "the table has no entry"); err != nil {
		t.Fatal(err)
	}
	list := func(when string) {
		t.Helper()
		out := codea1(ctx, t, []string{"deadletter", "list", "--run", "night", "--runs-dir", runs, "--json"})
		if !strings.Contains(out, `"group":"s000001-q0007"`) || !strings.Contains(out, `"reason":"the table has no entry"`) {
			t.Errorf("%s: %s", when, out)
		}
	}
	list("while the server runs")
	if err := bus.Close(); err != nil {
		t.Fatal(err)
	}
	server.Shutdown()
	list("afterwards")
	if out := codea1(ctx, t, []string{"deadletter", "list", "--run", "day", "--runs-dir", runs}); !strings.Contains(out, "--bus names the bus of a run on another machine") {
		t.Error(out)
	}
}

// The dead letters of a run whose bus is gone come from its log, and those of another one if
// the user says so.
func TestDeadLettersOfALog(t *testing.T) {
	runs := t.TempDir()
	for dir, part := range map[string]string{"gone": rundir.Log("gone"), "there": rundir.NATS("there")} {
		if err := os.MkdirAll(filepath.Join(runs, dir, filepath.Base(part)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	log := func(_ context.Context, dir, run string, _ *slog.Logger) ([]events.DeadLetter, error) {
		return []events.DeadLetter{
			{Name: "execution", EventID: "e1", Type: events.TypeTestsSampled, Group: "s000001-q0003", Reason: dir + " " + run},
			{Name: "rewards", EventID: "e2", Type: events.TypeCodeExecuted, Group: "s000001-q0004", Reason: "other"},
		}, nil
	}
	for _, args := range [][]string{{"--run", "gone"}, {"--run", "there", "--from-log"}, {"--run", "gone", "--json"}} {
		out := codea1(t.Context(), t, append([]string{"deadletter", "list", "--stage", "execution", "--runs-dir", runs}, args...), log)
		if !strings.Contains(out, runs+" "+args[1]) || !strings.Contains(out, "s000001-q0003") || strings.Contains(out, "s000001-q0004") || strings.Contains(out, `"round"`) {
			t.Errorf("%v: %s", args, out)
		}
	}
}
