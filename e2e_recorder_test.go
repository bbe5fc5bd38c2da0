package main

import (
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"codea1/events"
	"codea1/events/connect"
)

// join returns a client of the server.
func (b *natsBroker) join(t *testing.T) events.Broker {
	t.Helper()
	flags := &connect.Flags{URL: b.url(), TokenFile: b.tokenFile(t)}
	bus, err := flags.Open(t.Context(), "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bus.Close() })
	return bus
}

// A worker without a recorder waits, says so, and does not create the run on the
// bus.
func TestWorkersBeforeTheirRun(t *testing.T) {
	t.Parallel()
	server := startNATS(t)
	var waiting []*process
	for _, name := range []string{"rewards", "dashboard"} {
		args := append([]string{"stage", name, "--run", "r"}, server.flags(t, operator)...)
		if name == "dashboard" {
			args = append(args, "--dashboard-address", "127.0.0.1:0")
		}
		waiting = append(waiting, start(t, t.TempDir(), args...))
	}
	for _, p := range waiting {
		eventually(t, "it waits for the run", func() bool { return strings.Contains(p.stderr.String(), "the run has not begun") })
	}
	if has, err := server.join(t).HasRun(t.Context(), "r"); err != nil || has {
		t.Errorf("the bus has the run: %v, %v", has, err)
	}
	for _, p := range waiting {
		if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := p.wait(t); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
}

// A recorder that finds another run of its name on the bus poses no problems.
func TestRecorderOfAnotherRun(t *testing.T) {
	t.Parallel()
	server := startNATS(t)
	flags := append([]string{"stage", "recorder", "--run", "r", "--lease-ttl", "1s"}, server.flags(t, operator)...)
	flags = append(flags, train()[2:]...)
	first := start(t, t.TempDir(), flags...)
	bus := server.join(t)
	posed, err := bus.Read(t.Context(), events.ReadConfig{Run: "r", Types: []events.Type{events.TypeProblemPosed}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := posed.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := first.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.ended
	sentence := refused(t, t.TempDir(), append(flags, "--answers", "3")...)
	if !strings.Contains(sentence, "another run with the name r, which differs in --answers (2 there, 3 here)") {
		t.Errorf("refused with %q", sentence)
	}
}
