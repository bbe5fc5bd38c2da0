package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/replay/eventlog"
)

// earlyGarbage trains while a client with the login of the stages takes the names
// of all events that an undisturbed run of the same seed has. The run must be the
// wanted one.
func earlyGarbage(t *testing.T, args []string, undisturbed string, want *history, steps int) {
	log, err := eventlog.Open(rundir.Log(undisturbed), eventlog.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	dir := t.TempDir()
	p := start(t, dir, args...)
	conn := p.asPipeline(t, runPath(dir, "r"))
	defer conn.Close()
	publish(t, conn, nil) // the run begins
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	taken, n := 0, 0
	for r, err := range log.Read(t.Context(), eventlog.ReadOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		m := r.Message
		if n++; n%2 == 0 {
			m.Encoding, m.Data = events.EncodingNone, []byte{0xc1}
		} else {
			m.SchemaVersion = 999
		}
		msg := nats.NewMsg("codea1.r." + string(m.Type) + "." + m.Group)
		m.Headers("ce-", msg.Header.Set)
		msg.Data = m.Data
		if n%3 == 0 {
			msg.Header = nil
		}
		if _, err := js.PublishMsg(t.Context(), msg); err == nil {
			taken++
		} else if !strings.Contains(err.Error(), "maximum messages per subject exceeded") { // the run was first
			t.Fatal(err)
		}
	}
	stream, err := js.Stream(t.Context(), "codea1-r")
	if err != nil {
		t.Fatal(err)
	}
	beside := 0
	for beside == 0 {
		info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter("codea1.r.again.>"))
		if err != nil {
			break // the run has ended
		}
		beside = len(info.State.Subjects)
	}
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	t.Logf("%d of %d names were taken before", taken, n)
	if taken < n/4 || beside == 0 {
		t.Errorf("%d of %d names were taken before, and %d events were stored beside", taken, n, beside)
	}
	got := read(t, runPath(dir, "r"), steps)
	if diff := cmp.Diff(want, got, sameRun); diff != "" {
		t.Errorf("(-alone +among garbage):\n%s", diff)
	}
	must(t, dir, "replay", "verify", "r")
}
