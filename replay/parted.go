package replay

import (
	"context"
	"slices"

	"codea1/events"
	"github.com/dgraph-io/badger/v4"
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
