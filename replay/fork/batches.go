package fork

import "context"

const (
	// batchEvents and batchBytes bound the events in memory.
	batchEvents = 256
	batchBytes  = 4 << 20
)

// batches collects items and sends them in batches of bounded size.
type batches[T any] struct {
	send  func(context.Context, []T) error
	items []T
	bytes int
}

// add adds an item of a number of bytes.
func (b *batches[T]) add(ctx context.Context, item T, bytes int) error {
	b.items = append(b.items, item)
	b.bytes += bytes
	if len(b.items) < batchEvents && b.bytes < batchBytes {
		return nil
	}
	return b.flush(ctx)
}

func (b *batches[T]) flush(ctx context.Context) error {
	items := b.items
	b.items, b.bytes = b.items[:0], 0
	if len(items) == 0 {
		return nil
	}
	return b.send(ctx, items)
}
