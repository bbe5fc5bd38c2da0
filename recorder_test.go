package main

import (
	"log/slog"
	"strings"
	"testing"

	"codea1/events"
)

// A recorder that finds another run of its name on the bus does not pose its own
// questions among that one's.
func TestRecorderOfAnotherRun(t *testing.T) {
	t.Parallel()
	server := startNATS(t)
	flags := append([]string{"stage", "recorder", "--run", "r", "--lease-ttl", "1s"}, server.flags(t)...)
	flags = append(flags, train()[2:]...)
	first := start(t, t.TempDir(), flags...)
	bus, err := (&BusFlags{URL: server.server.ClientURL(), TokenFile: server.tokenFile(t)}).connect(t.Context(), "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
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
	if !strings.Contains(sentence, "another run of the name r, which differs in --answers (2 there, 3 here)") {
		t.Errorf("refused with %q", sentence)
	}
}
