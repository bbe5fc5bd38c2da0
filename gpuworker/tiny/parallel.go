package tiny

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// parallel calls do(worker, item) once for each item in [0,items), on at most
// so many goroutines, and waits for them. Which worker takes an item is left
// to chance: do must give the same result on any. It stops at the first error
// or when ctx ends, and returns why.
func parallel(ctx context.Context, workers, items int, do func(worker, item int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for worker := range min(workers, items) {
		group.Go(func() error {
			for {
				item := int(next.Add(1) - 1)
				if item >= items {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := do(worker, item); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}
