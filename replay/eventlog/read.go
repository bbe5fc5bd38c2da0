package eventlog

import (
	"context"
	"fmt"
	"iter"

	"github.com/dgraph-io/badger/v4"

	"codea1/events"
)

// ReadOptions selects the events that Read yields.
type ReadOptions struct {
	From  uint64        // first sequence number; 0 and 1 are the start
	To    uint64        // last sequence number; 0 is the end
	Types []events.Type // event types; empty for all
}

// Read yields the events of the log in order, as of the start of the iteration.
// It does not read the values of other types. A gap in the sequence numbers, or
// a record that cannot be read, ends the iteration with a *CorruptError; the end
// of ctx ends it with ctx.Err().
func (l *Log) Read(ctx context.Context, options ReadOptions) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		v, closeView, err := l.view()
		if err != nil {
			yield(Record{}, err)
			return
		}
		defer closeView()
		err = v.read(ctx, options, func(item *badger.Item) (bool, error) {
			r, _, err := v.record(item)
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

// read calls visit for every selected event until it returns false. Badger ends
// an iteration at a block that it cannot read without an error; the comparison
// with the head finds that.
func (v view) read(ctx context.Context, options ReadOptions, visit func(*badger.Item) (bool, error)) error {
	var wanted [256]bool
	for _, t := range options.Types {
		wanted[typeCodes[t]] = true
	}
	all := len(options.Types) == 0
	it := v.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceEvents}})
	defer it.Close()
	next := max(options.From, 1)
	for it.Seek(eventKey(next)); it.Valid(); it.Next() {
		// A look at the context costs as much as a step over an event.
		if next%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if options.To != 0 && next > options.To {
			return nil
		}
		item := it.Item()
		seq, ok := seqOf(item.Key())
		if !ok || seq != next {
			return v.log.corrupt(next, fmt.Sprintf("event is missing: the next key is %x", item.Key()), nil)
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
	end, err := v.head()
	if err == nil && next <= end.seq && (options.To == 0 || next <= options.To) {
		err = v.log.corrupt(next, fmt.Sprintf("%d events, but the head says %d", next-1, end.seq), nil)
	}
	return err
}
