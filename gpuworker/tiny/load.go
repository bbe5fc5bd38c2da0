package tiny

import (
	"bytes"
	"context"
	"fmt"
	"os"
)

// LoadWeights implements gpuworker.Sampler. Optimizer state of the engine, if
// any, is dropped with the weights it belonged to.
func (e *Engine) LoadWeights(ctx context.Context, dir string) error {
	c, err := e.readLike(ctx, dir, false)
	if err != nil {
		return err
	}
	e.replace(c)
	return nil
}

// Load implements gpuworker.Learner.
func (e *Engine) Load(ctx context.Context, dir string) error {
	c, err := e.readLike(ctx, dir, true)
	if err != nil {
		return err
	}
	e.replace(c)
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

func (e *Engine) replace(c *checkpoint) {
	current := newModel(c.weights)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.current, e.optimizer = current, c.optimizer
}

// readLike reads a checkpoint that must fit the engine. The engine stays as it
// was on any error.
func (e *Engine) readLike(ctx context.Context, dir string, withOptimizer bool) (*checkpoint, error) {
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
