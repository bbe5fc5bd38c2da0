package fork

import (
	"context"

	"codea1/replay/eventlog"
)

const (
	// batchEvents and batchBytes bound the events that are in memory.
	batchEvents = 256
	batchBytes  = 4 << 20
)

// batches appends entries to a log in batches of bounded size.
type batches struct {
	log      *eventlog.Log
	appended func(*eventlog.Appended) error // called after every batch, unless nil

	entries []eventlog.Incoming
	size    int
}

func (b *batches) add(ctx context.Context, e eventlog.Incoming) error {
	b.entries = append(b.entries, e)
	b.size += len(e.Message.Data)
	if len(b.entries) < batchEvents && b.size < batchBytes {
		return nil
	}
	return b.flush(ctx)
}

func (b *batches) flush(ctx context.Context) error {
	appended, err := b.log.Append(ctx, b.entries)
	b.entries, b.size = b.entries[:0], 0
	if err == nil && b.appended != nil {
		err = b.appended(&appended)
	}
	return err
}
