package tiny

import (
	"bytes"
	"context"
	"fmt"
	"os"
)

// LoadWeights implements gpuworker.Sampler. It discards the optimizer state.
func (e *Engine) LoadWeights(ctx context.Context, dir string) error {
	return e.load(ctx, dir, false)
}

// Load implements gpuworker.Learner.
func (e *Engine) Load(ctx context.Context, dir string) error {
	return e.load(ctx, dir, true)
}

func (e *Engine) load(ctx context.Context, dir string, withOptimizer bool) error {
	c, err := e.readLike(ctx, dir, withOptimizer)
	if err != nil {
		return err
	}
	current := newModel(c.weights)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.current, e.optimizer = current, c.optimizer
	return nil
}

// LoadReference implements gpuworker.Learner.
func (e *Engine) LoadReference(ctx context.Context, dir string) error {
	c, err := e.readLike(ctx, dir, false)
	if err != nil {
		return err
	}
	reference := newModel(c.weights)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reference = reference
	return nil
}

// readLike reads a checkpoint and checks that it has the engine's shape and
// tokenizer. It does not change the engine.
func (e *Engine) readLike(ctx context.Context, dir string, withOptimizer bool) (*contents, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := readCheckpoint(os.DirFS(dir), withOptimizer)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	if c.weights.Config != e.current.net.Weights.Config {
		return nil, fmt.Errorf("checkpoint %s: %w: its %s differs", dir, ErrMismatch, configFile)
	}
	if !bytes.Equal(c.files[tokenizerFile], e.files[tokenizerFile]) {
		return nil, fmt.Errorf("checkpoint %s: %w: its %s differs", dir, ErrMismatch, tokenizerFile)
	}
	return c, nil
}
