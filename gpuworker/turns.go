package gpuworker

import (
	"context"
	"sync"
)

// Turns orders two trainers that share a GPU: the second trains a step after the first
// has taken its optimizer steps. The first then writes its checkpoint while the second
// trains, and the second writes its own while the model of the first samples for the
// next step. Without an order both would write at the same time, with nothing for the
// GPU to do, and both would need the memory of an update at once.
//
// The first must be the trainer of the role that samples first. Each trainer reads all
// events of a step for itself, so neither waits for a group that the other has.
type Turns struct {
	mu      sync.Mutex
	trained int           // last step of the first trainer
	changed chan struct{} // closed when trained changes; nil while none waits
}

// Trained says that the first trainer has taken the optimizer steps of all steps up to
// step.
func (t *Turns) Trained(step int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if step <= t.trained {
		return
	}
	t.trained = step
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// Wait returns when the first trainer has trained a step, or with the error of ctx.
func (t *Turns) Wait(ctx context.Context, step int) error {
	for {
		t.mu.Lock()
		if t.trained >= step {
			t.mu.Unlock()
			return nil
		}
		if t.changed == nil {
			t.changed = make(chan struct{})
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
