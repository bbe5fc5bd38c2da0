package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"codea1/consumers/execution"
	"codea1/consumers/execution/sandbox"
	"codea1/consumers/execution/sandboxfusion"
	"codea1/events"
	"codea1/events/settings"
	"codea1/producers/problems"
)

// Limits for the check of a ground truth. Some ground truths of HumanEval need
// more than ten seconds and a gigabyte; the command bounds the time of a problem.
const (
	checkCallTimeout = time.Minute
	checkMemoryMiB   = 2 << 10
)

// checker implements problems.Checker. It opens the sandbox when the first problem
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

// newChecker returns a checker, with the sandbox that the environment describes,
// and the function that closes it.
func newChecker(ctx context.Context, logger *slog.Logger) (problems.Checker, func() error) {
	var opened *sandbox.Pool
	open := sync.OnceValues(func() (*sandbox.Pool, error) {
		var err error
		var flags sandbox.Flags
		if err = settings.Resolve(&flags, nil, envPrefix); err != nil {
			return nil, err
		}
		flags.CallTimeout, flags.JobTimeout, flags.MemoryMiB = checkCallTimeout, 0, checkMemoryMiB
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
