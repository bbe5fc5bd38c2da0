package main

import (
	"context"
	"log/slog"
	"sync"

	"codea1/consumers/execution"
	"codea1/consumers/execution/sandbox"
	"codea1/consumers/execution/sandboxfusion"
	"codea1/events"
	"codea1/events/settings"
	"codea1/producers/problems"
)

// checker implements problems.Checker and problems.Tracer. It opens the sandbox when the first problem
// is checked.
type checker struct {
	open func() (*sandbox.Pool, error)
}

// Check implements problems.Checker.
func (c *checker) Check(ctx context.Context, code, entryPoint string, tests []string) ([]events.GoldenVerdict, error) {
	pool, err := c.open()
	if err != nil {
		return nil, err
	}
	return execution.New(pool).CheckTruth(ctx, code, entryPoint, tests)
}

// maxTraces bounds the golden tests of a problem that are traced.
const maxTraces = 32

// Trace implements problems.Tracer.
func (c *checker) Trace(ctx context.Context, code, entryPoint string, tests []string) ([]problems.Trace, error) {
	pool, err := c.open()
	if err != nil {
		return nil, err
	}
	found, err := execution.New(pool).Trace(ctx, code, entryPoint, tests, maxTraces)
	traces := make([]problems.Trace, len(found))
	for i := range found {
		traces[i] = problems.Trace(found[i])
	}
	return traces, err
}

// newChecker returns a checker, with the sandbox and the limits that the environment
// describes, and the function that closes it.
func newChecker(ctx context.Context, logger *slog.Logger) (*checker, func() error) {
	var opened *sandbox.Pool
	open := sync.OnceValues(func() (*sandbox.Pool, error) {
		var err error
		var flags sandbox.Flags
		if err = settings.Resolve(&flags, nil, envPrefix); err != nil {
			return nil, err
		}
		opened, err = sandboxfusion.Open(ctx, &flags, logger)
		return opened, err
	})
	return &checker{open}, func() error {
		if opened == nil {
			return nil
		}
		return opened.Close()
	}
}
