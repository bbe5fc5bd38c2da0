package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/replay/eventlog"
)

// takeNames stores garbage under the names of all events that a run of the same seed
// has, as far as the training has not published them yet. It returns a function that
// checks, after the training, that the training published events beside garbage.
func (p *child) takeNames(t *testing.T, dir, sameSeed string) (check func()) {
	t.Helper()
	log, err := eventlog.Open(rundir.Log(sameSeed), eventlog.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	conn := p.asPipeline(t, runPath(dir, "r"))
	t.Cleanup(conn.Close)
	// The last versions and the end of the run, well-formed, long before their turn.
	last := 0
	for r, err := range log.Read(t.Context(), eventlog.ReadOptions{Types: []events.Type{events.TypePolicyUpdated}}) {
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Sscanf(r.Message.Group, "code-v%d", &last)
		if err != nil && !strings.HasPrefix(r.Message.Group, "test-v") {
			t.Fatal(err)
		}
	}
	var forged []*nats.Msg
	for r, err := range log.Read(t.Context(), eventlog.ReadOptions{Types: []events.Type{events.TypePolicyUpdated, events.TypeRunFinished}}) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := r.Decode()
		if err != nil {
			t.Fatal(err)
		}
		if u, ok := e.Payload.(*events.PolicyUpdated); ok {
			if u.Version < last {
				continue
			}
			u.Checkpoint.SHA256 = strings.Repeat("0a", 32)
		}
		forged = append(forged, toNATS(t, events.New("r", e.Group, "x", e.Time, e.Payload)))
	}
	if stored := publish(t, conn, forged); stored != 3 {
		t.Errorf("%d forged events of 3 were stored", stored)
	}
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
	beside := make(chan int, 1)
	go func() {
		for {
			info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter("codea1.r.again.>"))
			if err != nil || len(info.State.Subjects) > 0 {
				found := 0
				if err == nil { // the run has not ended
					found = len(info.State.Subjects)
				}
				beside <- found
				return
			}
		}
	}()
	return func() {
		t.Helper()
		stored := <-beside
		t.Logf("%d of %d names were taken before", taken, n)
		if taken < n/4 || stored == 0 {
			t.Errorf("%d of %d names were taken before, and %d events were stored beside", taken, n, stored)
		}
	}
}
