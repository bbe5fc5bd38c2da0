package main

import (
	"context"

	"codea1/consumers/execution/sandbox"
	"codea1/consumers/execution/sandboxfusion"
	"codea1/events"
	"codea1/events/process"
	"codea1/gpuworker/models"
)

// runner is a process of a run with the settings of the run: all stages under train, one
// under stage.
type runner struct {
	*process.Process
	settings *RunSettings  // of the run
	problems int           // training problems
	pool     *sandbox.Pool // nil until openPool
	models   *models.Set   // nil until configure
}

// configure sets the settings of the run.
func (r *runner) configure(s *RunSettings) {
	r.settings = s
	r.Models, r.Delivery = s.models(), s.Delivery
	r.models = &models.Set{Config: s.modelConfig(), Process: r.Process}
}

// openPool starts the sandbox, once.
func (r *runner) openPool(ctx context.Context) error {
	if r.pool != nil {
		return nil
	}
	pool, err := sandboxfusion.Open(ctx, &r.settings.Sandbox, r.Logger.With("stage", events.StageExecution))
	if err != nil {
		return err
	}
	r.pool = pool
	r.OnClose(pool.Close)
	return pool.Register(r.Metrics)
}
