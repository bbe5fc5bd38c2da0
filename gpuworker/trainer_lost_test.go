package gpuworker_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"codea1/events"
	"codea1/gpuworker"
	"codea1/gpuworker/tiny"
)

// forgetful is a learner that loses its weights in chosen calls, like an engine after its
// process dies.
type forgetful struct {
	*tiny.Engine
	loses map[int]bool // calls, from 0
	calls int
	lost  bool
	loads int
}

// forgets counts a call and reports whether the weights are lost.
func (f *forgetful) forgets() error {
	f.lost = f.lost || f.loses[f.calls]
	f.calls++
	if f.lost {
		return fmt.Errorf("the process died: %w", gpuworker.ErrStateLost)
	}
	return nil
}

func (f *forgetful) LogProbs(ctx context.Context, policy gpuworker.Policy, sequences []gpuworker.Sequence, temperature float64) ([][]float32, error) {
	if err := f.forgets(); err != nil {
		return nil, err
	}
	return f.Engine.LogProbs(ctx, policy, sequences, temperature)
}

func (f *forgetful) Update(ctx context.Context, sequences []gpuworker.Sequence, config gpuworker.UpdateConfig) (gpuworker.UpdateStats, error) {
	if err := f.forgets(); err != nil {
		return gpuworker.UpdateStats{}, err
	}
	return f.Engine.Update(ctx, sequences, config)
}

func (f *forgetful) Save(ctx context.Context, dir string) error {
	if err := f.forgets(); err != nil {
		_ = os.WriteFile(filepath.Join(dir, "model.safetensors"), []byte("half a file"), 0o644)
		return err
	}
	return f.Engine.Save(ctx, dir)
}

func (f *forgetful) Load(ctx context.Context, dir string) error {
	f.lost = false
	f.loads++
	return f.Engine.Load(ctx, dir)
}

// When its engine loses the weights, a trainer goes back to its newest checkpoint. It
// trains no step twice and publishes the versions of an undisturbed trainer.
func TestLostWeightsAreTrainedAgain(t *testing.T) {
	t.Parallel()
	start := initial(t)
	role := events.RoleTest
	want := reference(t, role, start)
	const each = 7 // losses fall on every kind of call
	learner := &forgetful{Engine: newEngine(99), loses: map[int]bool{}}
	for i := range 5 {
		learner.loses[i*each+i] = true
	}
	bus := connect(t, server(t))
	publish(t, bus, sampleRun.Shuffled(1))
	config := trainerConfig(bus, role, filepath.Join(t.TempDir(), "checkpoints"), start)
	config.Learner = learner
	if err := run(t, config); err != nil {
		t.Fatal(err)
	}
	if d := sameUpdates(want, updates(t, bus, sampleRun.Steps)); d != "" {
		t.Error(d)
	}
	if learner.loads < 4 {
		t.Errorf("%d loads in %d calls: did the learner lose its weights?", learner.loads, learner.calls)
	}
	t.Logf("%d loads, %d calls", learner.loads, learner.calls)
}
