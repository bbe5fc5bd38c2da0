package eventlog

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"

	"github.com/dgraph-io/badger/v4"

	"codea1/events"
)

func hashOf(b []byte) Hash { return sha256.Sum256(b) }

// ScanOptions selects what a scan yields.
type ScanOptions struct {
	From  uint64        // first sequence number; 0 and 1 are the start
	To    uint64        // last sequence number; 0 is the end
	Types []events.Type // event types; empty for all
}

// Scan yields the events of the log in order, as it stood when the scan began.
// Values of other types are not read. A gap in the numbers, or a record that
// cannot be read, ends the scan with a *CorruptError; the end of ctx ends it
// with ctx.Err().
func (l *Log) Scan(ctx context.Context, options ScanOptions) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		done, err := l.use()
		if err != nil {
			yield(Record{}, err)
			return
		}
		defer done()
		txn := l.db.NewTransaction(false)
		defer txn.Discard()
		err = l.scan(ctx, txn, options, func(item *badger.Item) (bool, error) {
			r, _, err := l.record(item)
			if err != nil {
				return false, err
			}
			return yield(r, nil), nil
		})
		if err != nil {
			yield(Record{}, err)
		}
	}
}

// scan calls visit for every selected event until it returns false. Badger ends
// an iteration at a block that it cannot read as it does behind the last one:
// whether it was the last, the head tells.
func (l *Log) scan(ctx context.Context, txn *badger.Txn, options ScanOptions, visit func(*badger.Item) (bool, error)) error {
	var wanted [256]bool
	for _, t := range options.Types {
		wanted[typeCodes[t]] = true
	}
	all := len(options.Types) == 0
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceEvents}})
	defer it.Close()
	next := max(options.From, 1)
	for it.Seek(eventKey(next)); it.Valid(); it.Next() {
		// Looking at the context costs as much as stepping over an event.
		if next%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if options.To != 0 && next > options.To {
			return nil
		}
		item := it.Item()
		seq, ok := seqOf(item.Key())
		if !ok || seq != next {
			return l.corrupt(next, fmt.Sprintf("event is missing: key %x stands in its place", item.Key()), nil)
		}
		next++
		if !all && !wanted[item.UserMeta()] {
			continue
		}
		more, err := visit(item)
		if err != nil || !more {
			return err
		}
	}
	end, err := l.readHead(txn)
	if err == nil && next <= end.seq && (options.To == 0 || next <= options.To) {
		err = l.corrupt(next, fmt.Sprintf("%d events, but the head says %d", next-1, end.seq), nil)
	}
	return err
}
