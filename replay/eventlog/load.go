package eventlog

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// load reads the state of the log from the store and compares it with the last
// events.
func (l *Log) load() error {
	if err := l.checkFormat(); err != nil {
		return err
	}
	v := view{l, l.db.NewTransaction(false)}
	defer v.txn.Discard()
	var err error
	if l.head, err = v.head(); err != nil {
		return err
	}
	if l.compacted, err = v.compaction(); err != nil {
		return err
	}
	if l.quarantine, err = v.quarantine(); err != nil {
		return err
	}
	if err := v.checkTail(l.head); err != nil {
		return err
	}
	if l.options.rehearsal {
		if !l.cut {
			return nil
		}
		l.options.Logger.Warn("the newest value log ends within an entry: checking all events", "dir", l.dir)
		return v.checkValues(context.Background(), l.head)
	}
	if err := l.loadBook(v); err != nil || l.options.ReadOnly {
		return err
	}
	if err := l.loadRecent(); err != nil {
		return err
	}
	l.tail.seq, l.tail.chain = l.head.seq, l.head.chain
	l.tail.quarantine = l.quarantine
	l.refuses = v.has(spaceRefused)
	if err := l.loadState(v); err != nil {
		return err
	}
	l.tail.course = courseOf(l.state)
	return nil
}

func (l *Log) checkFormat() error {
	var raw []byte
	err := l.db.View(func(txn *badger.Txn) (err error) {
		raw, err = view{l, txn}.get(keyFormat)
		return err
	})
	switch {
	case err != nil:
		return l.corrupt(0, "format version cannot be read", err)
	case raw == nil && l.options.ReadOnly:
		return fmt.Errorf("%w: %s has no format version", ErrNoLog, l.dir)
	case raw == nil:
		return l.db.Update(func(txn *badger.Txn) error { return txn.Set(keyFormat, []byte{FormatVersion}) })
	case len(raw) != 1:
		return l.corrupt(0, fmt.Sprintf("format version %x is malformed", raw), nil)
	case raw[0] > FormatVersion:
		return fmt.Errorf("%w: log %s has version %d, this build knows %d", ErrNewerFormat, l.dir, raw[0], FormatVersion)
	}
	return nil
}

// tailRecords is how many of the last events are read when a log opens: an
// interrupted write, and Badger's repair of it, change only the end.
const tailRecords = 64

// checkTail compares the last events with the head.
func (v view) checkTail(end head) error {
	seq := end.seq
	it := v.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceEvents}, Reverse: true})
	defer it.Close()
	it.Seek(eventKey(^uint64(0)))
	for i := 0; i < tailRecords && seq > 0; i++ {
		if !it.Valid() {
			return v.log.corrupt(seq, "event is missing", nil)
		}
		r, _, err := v.record(it.Item())
		if err != nil {
			return err
		}
		if r.Seq != seq {
			return v.log.corrupt(seq, fmt.Sprintf("event is missing: event %d is the next", r.Seq), nil)
		}
		if seq == end.seq && r.Chain != end.chain {
			return v.log.corrupt(seq, "chain hash is not that of the head", nil)
		}
		seq--
		it.Next()
	}
	if seq == 0 && it.Valid() {
		return v.log.corrupt(0, "has events, but no head", nil)
	}
	return v.checkLarge()
}

// checkLarge reads the last event in the value log. If it is readable, Badger's
// repair has not cut the value log before it.
func (v view) checkLarge() error {
	raw, err := v.get(keyLarge)
	if err != nil || raw == nil {
		return err
	}
	if len(raw) != 8 {
		return v.log.corrupt(0, "number of the last large event is malformed", nil)
	}
	item, err := v.event(binary.BigEndian.Uint64(raw))
	if err != nil {
		return err
	}
	_, _, err = v.record(item)
	return err
}

// checkValues reads all values that the log needs. It is for a store with a cut
// value log: an interrupted write leaves only values that no key names.
func (v view) checkValues(ctx context.Context, end head) error {
	err := v.read(ctx, ReadOptions{}, func(item *badger.Item) (bool, error) {
		_, _, err := v.record(item)
		return true, err
	})
	if err != nil {
		return err
	}
	for _, err := range v.indexEntries(end.seq) {
		if err != nil {
			return err
		}
	}
	it := v.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceDeltas}})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		value, err := it.Item().ValueCopy(nil)
		if err != nil || len(value) == 0 {
			seq, _ := seqOf(it.Item().Key())
			return v.log.corrupt(seq, "changes of the mistake book cannot be read", err)
		}
	}
	return nil
}
