package eventlog

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// load reads the head and the book and checks them against the last events.
func (l *Log) load() error {
	if err := l.checkFormat(); err != nil {
		return err
	}
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	var err error
	if l.head, err = l.readHead(txn); err != nil {
		return err
	}
	if l.bare, err = l.readBare(txn); err != nil {
		return err
	}
	if err := l.checkTail(txn); err != nil {
		return err
	}
	if l.options.rehearsal {
		if !l.cut {
			return nil
		}
		l.options.Logger.Warn("the newest value log ends within an entry: all events are read to see whether it is one of theirs", "dir", l.dir)
		return l.checkValues(context.Background(), txn)
	}
	if err := l.loadBook(txn); err != nil || l.options.ReadOnly {
		return err
	}
	if err := l.loadRecent(); err != nil {
		return err
	}
	l.tail.seq, l.tail.chain = l.head.seq, l.head.chain
	l.refuses = anyKey(txn, spaceRefused)
	return l.loadState(txn)
}

// anyKey reports whether there is a key in a space.
func anyKey(txn *badger.Txn, space byte) bool {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{space}})
	defer it.Close()
	it.Rewind()
	return it.Valid()
}

func (l *Log) checkFormat() error {
	var raw []byte
	err := l.db.View(func(txn *badger.Txn) (err error) {
		raw, err = get(txn, keyFormat)
		return err
	})
	if err != nil {
		return l.corrupt(0, "format version cannot be read", err)
	}
	if raw == nil {
		if l.options.ReadOnly {
			return fmt.Errorf("%w: %s holds no format version", ErrNoLog, l.dir)
		}
		return l.db.Update(func(txn *badger.Txn) error { return txn.Set(keyFormat, []byte{FormatVersion}) })
	}
	if len(raw) != 1 {
		return l.corrupt(0, fmt.Sprintf("format version %x is malformed", raw), nil)
	}
	if raw[0] > FormatVersion {
		return fmt.Errorf("%w: log %s has version %d, this build knows %d", ErrNewerFormat, l.dir, raw[0], FormatVersion)
	}
	return nil
}

func (l *Log) readHead(txn *badger.Txn) (head, error) {
	raw, err := get(txn, keyHead)
	if err != nil {
		return head{}, l.corrupt(0, "head cannot be read", err)
	}
	if raw == nil {
		return head{}, nil
	}
	h, ok := decodeHead(raw)
	if !ok {
		return head{}, l.corrupt(0, "head is malformed", nil)
	}
	return h, nil
}

// tailRecords is how many of the last events are read when a log opens. The end
// is where an interrupted write, and Badger's repair of it, would show.
const tailRecords = 64

func (l *Log) checkTail(txn *badger.Txn) error {
	seq := l.head.seq
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceEvents}, Reverse: true})
	defer it.Close()
	it.Seek(eventKey(^uint64(0)))
	for i := 0; i < tailRecords && seq > 0; i++ {
		if !it.Valid() {
			return l.corrupt(seq, "event is missing", nil)
		}
		r, _, err := l.record(it.Item())
		if err != nil {
			return err
		}
		if r.Seq != seq {
			return l.corrupt(seq, fmt.Sprintf("event %d stands in its place", r.Seq), nil)
		}
		if seq == l.head.seq && r.Chain != l.head.chain {
			return l.corrupt(seq, "chain hash is not the one the log ends with", nil)
		}
		seq--
		it.Next()
	}
	if seq == 0 && it.Valid() {
		return l.corrupt(0, "holds events, but no head", nil)
	}
	return l.checkLarge(txn)
}

// checkLarge reads the last event in the value log, however long ago it was. If
// it is there, Badger's repair has cut nothing off.
func (l *Log) checkLarge(txn *badger.Txn) error {
	raw, err := get(txn, keyLarge)
	if err != nil || raw == nil {
		return err
	}
	if len(raw) != 8 {
		return l.corrupt(0, "number of the last large event is malformed", nil)
	}
	seq := binary.BigEndian.Uint64(raw)
	item, err := txn.Get(eventKey(seq))
	if err != nil {
		return l.corrupt(seq, "event is missing", err)
	}
	_, _, err = l.record(item)
	return err
}

// checkValues reads all that a log cannot do without. It is for a store whose
// newest value log was cut: nothing leads to what an interrupted write has left.
func (l *Log) checkValues(ctx context.Context, txn *badger.Txn) error {
	err := l.scan(ctx, txn, ScanOptions{}, func(item *badger.Item) (bool, error) {
		_, _, err := l.record(item)
		return true, err
	})
	if err != nil {
		return err
	}
	for _, err := range l.indexEntries(txn, l.head.seq) {
		if err != nil {
			return err
		}
	}
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceDeltas}})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		value, err := it.Item().ValueCopy(nil)
		if err != nil || len(value) == 0 { // why, Badger only logs
			seq, _ := seqOf(it.Item().Key())
			return l.corrupt(seq, "deltas cannot be read", err)
		}
	}
	return nil
}
