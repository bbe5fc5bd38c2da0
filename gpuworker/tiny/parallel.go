package tiny

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// parallel calls do once for each item in [0,items), on at most workers
// goroutines, and waits for them. The order of the items is not defined. It stops
// at the first error or when ctx ends, and returns that error. The context of do
// ends at the first error.
func parallel(ctx context.Context, workers, items int, do func(ctx context.Context, item int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(workers, items) {
		group.Go(func() error {
			for {
				item := int(next.Add(1) - 1)
				if item >= items {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := do(ctx, item); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}
