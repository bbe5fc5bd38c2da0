package main

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"codea1/consumers/execution"
	"codea1/events"
	"codea1/producers/problems"
)

// A ground truth that is checked may take its time: some of HumanEval's need
// more than ten seconds and a gigabyte. The command bounds a problem as a whole.
const (
	checkCallTimeout = time.Minute
	checkMemoryBytes = 2 << 30
)

// checker opens the sandbox when the first problem is checked.
type checker struct {
	open func() (*execution.Pool, error)
}

// Check implements problems.Checker.
func (c *checker) Check(ctx context.Context, code, entryPoint string, tests []string) ([]events.GoldenVerdict, error) {
	pool, err := c.open()
	if err != nil {
		return nil, err
	}
	return pool.Check(ctx, code, entryPoint, tests)
}

// newChecker returns the sandbox as package problems wants it, and what closes
// it.
func newChecker(ctx context.Context, logger *slog.Logger) (problems.Checker, func() error) {
	var opened *execution.Pool
	open := sync.OnceValues(func() (*execution.Pool, error) {
		var err error
		opened, err = execution.Open(ctx, execution.Config{
			Python: os.Getenv(envName("python")), CallTimeout: checkCallTimeout, MemoryBytes: checkMemoryBytes, Logger: logger,
		})
		return opened, err
	})
	return &checker{open}, func() error {
		if opened == nil {
			return nil
		}
		return opened.Close()
	}
}
