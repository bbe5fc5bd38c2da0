package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
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
	var waiting []*child
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

// A run does not go on with other problems than it started with, whichever of its
// two files changed. A file of other bytes with the same problems is no change.
func TestProblemsChangedBetweenAttempts(t *testing.T) {
	t.Parallel()
	server := startNATS(t)
	dir := t.TempDir()
	flags := append([]string{"stage", "recorder", "--run", "r", "--lease-ttl", "1s"}, server.flags(t, operator)...)
	flags = append(flags, train()[2:]...)
	texts := map[string]string{}
	for _, set := range []string{"problems", "heldout"} {
		text, err := os.ReadFile(filepath.Join("testdata", set+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, set+".jsonl")
		texts[file] = string(text)
		flags = append(flags, "--"+set, file)
	}
	write := func(edit func(string) string) {
		for file, text := range texts {
			if err := os.WriteFile(file, []byte(edit(text)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	reader, err := server.join(t).Read(t.Context(), events.ReadConfig{Run: "r", Types: []events.Type{events.TypeRunStarted, events.TypeProblemPosed}})
	if err != nil {
		t.Fatal(err)
	}
	begin := func(until events.Type) {
		t.Helper()
		p := start(t, dir, flags...)
		for m := (events.Message{}); m.Type != until; {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			if m, _, err = reader.Next(ctx); err != nil {
				t.Fatal(err)
			}
			cancel()
		}
		if err := p.command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-p.ended
	}
	write(func(text string) string { return text })
	begin(events.TypeProblemPosed) // the log has the first run.started
	write(func(text string) string { return strings.ReplaceAll(text, "\n", "\n\n") })
	begin(events.TypeRunStarted)
	for file, text := range texts {
		write(func(text string) string { return text })
		if err := os.WriteFile(file, []byte(strings.Replace(text, "\"question\": \"", "\"question\": \"Now: ", 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		if sentence := refused(t, dir, flags...); !strings.Contains(sentence, file+": its problems are not those that the run started with") {
			t.Errorf("refused with %q", sentence)
		}
	}
}
