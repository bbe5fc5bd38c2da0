package main

import (
	"context"
	"log/slog"
	"sync"

	"codea1/consumers/execution"
	"codea1/events"
	"codea1/producers/problems"
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
		opened, err = execution.Open(ctx, execution.Config{Logger: logger})
		return opened, err
	})
	return &checker{open}, func() error {
		if opened == nil {
			return nil
		}
		return opened.Close()
	}
}
