package eventlog

import (
	"context"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"codea1/events"
)

// undropped returns, sorted, the IDs of the standing events of refusals for which
// the log has no group.dropped event.
func (l *Log) undropped(ctx context.Context) ([]string, error) {
	v, closeView, err := l.view()
	if err != nil {
		return nil, err
	}
	defer closeView()
	var ids []string
	err = v.refusals(ctx, func(_, value []byte) error {
		var standing eventID
		copy(standing[:], value)
		dropped, err := l.lookup(parseID(events.DeriveID(standing.String(), events.TypeGroupDropped)))
		if err == nil && dropped == 0 {
			ids = append(ids, standing.String())
		}
		return err
	})
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// refusals calls visit for the key and the value of every refusal.
func (v view) refusals(ctx context.Context, visit func(key, value []byte) error) error {
	it := v.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceRefused}})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		value, err := it.Item().ValueCopy(nil)
		if err != nil {
			return v.log.corrupt(0, "refusal cannot be read", err)
		}
		if err := visit(it.Item().KeyCopy(nil), value); err != nil {
			return err
		}
	}
	return nil
}

// CopyRefusals copies the refusals of source to target, so that target refuses
// the descendants of the same payloads. It returns their number.
func CopyRefusals(ctx context.Context, source, target *Log) (n uint64, err error) {
	v, closeView, err := source.view()
	if err != nil {
		return 0, err
	}
	defer closeView()
	batch := target.db.NewWriteBatch()
	defer batch.Cancel()
	err = v.refusals(ctx, func(key, value []byte) error {
		n++
		return batch.Set(key, value)
	})
	if err != nil {
		return n, err
	}
	return n, batch.Flush()
}
