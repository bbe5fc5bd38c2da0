package gpuworker_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"codea1/events"
	"codea1/gpuworker"
)

// noted is a learner that notes its updates and saves.
type noted struct {
	gpuworker.Learner
	note func(string)
	role events.Role
}

func (l noted) Update(ctx context.Context, s []gpuworker.Sequence, config gpuworker.UpdateConfig) (gpuworker.UpdateStats, error) {
	defer l.note(string(l.role) + " update")
	return l.Learner.Update(ctx, s, config)
}

func (l noted) Save(ctx context.Context, dir string) error {
	defer l.note(string(l.role) + " save")
	return l.Learner.Save(ctx, dir)
}

// The second trainer takes the optimizer steps of a step after those of the first, both
// make the versions that they make alone, and a first trainer that has trained already
// does not block a second one that is behind.
func TestTrainersTakeTurns(t *testing.T) {
	t.Parallel()
	start := initial(t)
	bus := connect(t, server(t))
	publish(t, bus, sampleRun.Messages())
	folders := map[events.Role]string{events.RoleCode: policies(t, events.RoleCode).Path, events.RoleTest: policies(t, events.RoleTest).Path}
	var mu sync.Mutex
	var notes []string
	note := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		notes = append(notes, text)
	}
	train := func(ctx context.Context, turns *gpuworker.Turns, role events.Role, steps int) error {
		config := trainerConfig(bus, role, folders[role], start)
		config.Learner = noted{Learner: config.Learner, note: note, role: role}
		config.Turns, config.Second, config.Steps = turns, role == events.RoleTest, steps
		trainer, err := gpuworker.NewTrainer(config)
		if err != nil {
			return err
		}
		return trainer.Run(ctx)
	}
	both := func(steps int) {
		t.Helper()
		turns := &gpuworker.Turns{}
		g, ctx := errgroup.WithContext(t.Context())
		for role := range folders {
			g.Go(func() error { return train(ctx, turns, role, steps) })
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	both(2)
	batches := sampleRun.Groups / hyper().GroupsPerBatch
	done := map[string]int{}
	for _, n := range notes {
		done[n]++
		if step := done["test save"] + 1; n == "test update" && done["code update"] < step*batches {
			t.Fatalf("the second trainer trained step %d after %d of %d updates of the first: %q", step, done["code update"], step*batches, notes)
		}
	}
	if done["code update"] != 2*batches || done["test update"] == 0 || done["test save"] != 2 {
		t.Fatalf("%v", done)
	}
	// A run that stopped when the first trainer had one step more.
	if err := train(t.Context(), &gpuworker.Turns{}, events.RoleCode, 3); err != nil {
		t.Fatal(err)
	}
	both(sampleRun.Steps)
	for role := range folders {
		var got []*events.PolicyUpdated
		for _, u := range updates(t, bus, 2*sampleRun.Steps) {
			if u.Role == role {
				got = append(got, u)
			}
		}
		slices.SortFunc(got, func(a, b *events.PolicyUpdated) int { return a.Version - b.Version })
		if diff := sameUpdates(reference(t, role, start), got); diff != "" {
			t.Errorf("%s: with turns, other versions (-alone +with turns):\n%s", role, diff)
		}
	}
}

func TestTurnEndsWithItsContext(t *testing.T) {
	var turns gpuworker.Turns
	ctx, cancel := context.WithCancel(t.Context())
	turns.Trained(1)
	if err := turns.Wait(ctx, 1); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := turns.Wait(ctx, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("have %v", err)
	}
}
