package gpuworker_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/events/stage"
	"codea1/gpuworker"
	"codea1/gpuworker/enginetest"
)

// rolloutStage is a role's sampling stage on a bus, as package main makes it.
func rolloutStage(t *testing.T, bus events.Bus, r *gpuworker.Rollout, name string) *stage.Stage {
	t.Helper()
	s, err := stage.New(stage.Config{
		Bus: bus, Run: "r1", Name: name, Types: []events.Type{r.Consumes()}, Handler: r.Handle,
		Batch: 4, Linger: 5 * time.Millisecond, AckWait: 2 * time.Second, DrainTimeout: time.Second,
		Backoff: stage.Backoff{Initial: 10 * time.Millisecond, Max: 50 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBothRolesOnABus(t *testing.T) {
	const groups = 10
	bus := connect(t, server(t))
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		f, err := gpuworker.NewFollower(gpuworker.FollowerConfig{Bus: bus, Run: "r1", Role: role, Sampler: enginetest.NewBigram(3)})
		if err != nil {
			t.Fatal(err)
		}
		background(t, f.Run)
		r := newRollout(t, role, f, openJournal(t, t.TempDir()))
		background(t, rolloutStage(t, bus, r, string(role)+"-rollout").Run)
	}
	publish(t, bus, []events.Message{
		checkpoint(t, filepath.Join(t.TempDir(), "test"), events.RoleTest, 2),
	})
	for slot := range groups {
		m, err := events.Encode(pose(t, slot, func(p *events.ProblemPosed) {
			p.Plan.TestVersion = 2 * (slot % 2)
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

// A worker that dies between journal and bus publishes, when it is back, what
// it had sampled, whatever its weights are by then.
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
	j := openJournal(t, dir)
	stop := background(t, rolloutStage(t, failingBus{bus}, newRollout(t, events.RoleCode, p, j), "code-rollout").Run)
	id := events.DeriveID(posed.ID, events.TypeCodeSampled)
	var want events.Message
	for found := false; !found; time.Sleep(time.Millisecond) {
		if want, found, err = j.Get(id); err != nil {
			t.Fatal(err)
		}
	}
	_ = stop() // it could not publish, and may say so
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}

	p.version = 7
	background(t, rolloutStage(t, bus, newRollout(t, events.RoleCode, p, openJournal(t, dir)), "code-rollout").Run)
	reader, err := bus.Read(t.Context(), events.ReadConfig{Run: "r1", Types: []events.Type{events.TypeCodeSampled}})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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
