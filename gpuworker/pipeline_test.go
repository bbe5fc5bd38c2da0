package gpuworker_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/events/outbox"
	"codea1/events/stage"
	"codea1/gpuworker"
	"codea1/gpuworker/checkpoint"
)

// rolloutStage returns a role's rollout stage on a bus, as package main makes it.
func rolloutStage(t *testing.T, bus events.Bus, r *gpuworker.Rollout, box *outbox.Outbox, name string) *stage.Stage {
	t.Helper()
	s, err := stage.New(stage.Config{
		Bus: bus, Run: "r1", Name: name, Types: []events.Type{r.Consumes()}, Handler: outbox.Handler(box, r.Makes(), r.Handle),
		Batch: 4, Linger: 5 * time.Millisecond, AckWait: 2 * time.Second, DrainTimeout: time.Second,
		Backoff: stage.Backoff{Initial: 10 * time.Millisecond, Max: 50 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openOutbox(t *testing.T, dir string) *outbox.Outbox {
	t.Helper()
	box, err := outbox.Open(dir, outbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	return box
}

func TestBothRolesOnABus(t *testing.T) {
	const groups = 10
	bus := connect(t, server(t))
	tests := policies(t, events.RoleTest)
	for _, folder := range []checkpoint.Folder{policies(t, events.RoleCode), tests} {
		role, f := folder.Role, follower(t, bus, folder, newEngine(3), time.Minute)
		background(t, f.Run)
		r := newRollout(t, role, f)
		background(t, rolloutStage(t, bus, r, openOutbox(t, t.TempDir()), string(role)+"-rollout").Run)
	}
	publish(t, bus, []events.Message{
		savedVersion(t, tests, 1),
		savedVersion(t, tests, 2),
	})
	for slot := range groups {
		m, err := events.Encode(pose(t, slot, func(p *events.ProblemPosed) {
			p.Plan.Step, p.Plan.TestVersion = 3, 2*(slot%2)
			if slot == 3 {
				p.Problem.Question = string(make([]byte, 300)) // 300 tokens: too long
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		publish(t, bus, []events.Message{m})
	}
	for _, e := range read(t, bus, "r1", groups-1, events.TypeTestsSampled) {
		p := e.Payload.(*events.TestsSampled)
		if p.Version < p.Posed.Plan.TestVersion {
			t.Errorf("group %s: tests of version %d, want %d", e.Group, p.Version, p.Posed.Plan.TestVersion)
		}
	}
	dropped := read(t, bus, "r1", 1, events.TypeGroupDropped)[0].Payload.(*events.GroupDropped)
	if dropped.Slot != 3 || dropped.Reason != events.DropTooLarge {
		t.Errorf("%+v", dropped)
	}
}

// A worker that stops after it wrote to the outbox publishes the stored completions
// after its restart, even with other weights.
func TestRolloutSurvivesARestartBeforeItPublished(t *testing.T) {
	bus := connect(t, server(t))
	dir := t.TempDir()
	posed := pose(t, 0, nil)
	m, err := events.Encode(posed)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, bus, []events.Message{m})

	p := newPolicy()
	box := openOutbox(t, dir)
	stop := background(t, rolloutStage(t, failingBus{bus}, newRollout(t, events.RoleCode, p), box, "code-rollout").Run)
	id := events.DeriveID(posed.ID, events.TypeCodeSampled)
	var want events.Message
	for found := false; !found; time.Sleep(time.Millisecond) {
		if want, found, err = box.Get(id); err != nil {
			t.Fatal(err)
		}
	}
	_ = stop() // it could not publish and may return an error
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}

	p.version = 7
	background(t, rolloutStage(t, bus, newRollout(t, events.RoleCode, p), openOutbox(t, dir), "code-rollout").Run)
	reader, err := bus.Read(t.Context(), events.ReadConfig{Run: "r1", Types: []events.Type{events.TypeCodeSampled}})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	got, _, err := reader.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if len(p.calls) != 1 {
		t.Errorf("%d calls of the engine", len(p.calls))
	}
}
