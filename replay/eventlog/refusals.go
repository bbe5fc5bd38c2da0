package eventlog

import (
	"context"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"codea1/events"
)

// partedLineages returns, sorted, the IDs of the standing events from which a
// refused event's lineage parts and whose drop is not in the log.
func (l *Log) partedLineages(ctx context.Context) ([]string, error) {
	done, err := l.use()
	if err != nil {
		return nil, err
	}
	defer done()
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceRefused}})
	defer it.Close()
	var parted []string
	for it.Rewind(); it.Valid(); it.Next() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var standing eventID
		if err := it.Item().Value(func(value []byte) error { copy(standing[:], value); return nil }); err != nil {
			return nil, l.corrupt(0, "refusal cannot be read", err)
		}
		dropped, err := l.lookup(parseID(events.DeriveID(standing.String(), events.TypeGroupDropped)))
		if err != nil {
			return nil, err
		}
		if dropped == 0 {
			parted = append(parted, standing.String())
		}
	}
	slices.Sort(parted)
	return slices.Compact(parted), nil
}

// CopyRefusals copies what the events alone do not tell: which events were left
// out, so that what follows from them stays out too.
func CopyRefusals(ctx context.Context, source, target *Log) (n uint64, err error) {
	txn := source.db.NewTransaction(false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceRefused}})
	defer it.Close()
	batch := target.db.NewWriteBatch()
	defer batch.Cancel()
	for it.Rewind(); it.Valid(); it.Next() {
		if n%64 == 0 && ctx.Err() != nil {
			return n, ctx.Err()
		}
		value, err := it.Item().ValueCopy(nil)
		if err != nil {
			return n, source.corrupt(0, "refusal cannot be read", err)
		}
		if err := batch.Set(it.Item().KeyCopy(nil), value); err != nil {
			return n, err
		}
		n++
	}
	return n, batch.Flush()
}
