package eventlog

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// get returns a copy of a key's value, nil where there is none.
func get(txn *badger.Txn, key []byte) ([]byte, error) {
	item, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return item.ValueCopy(nil)
}

// record reads the event under an item; value is its encoded form.
func (l *Log) record(item *badger.Item) (r Record, value []byte, err error) {
	seq, ok := seqOf(item.Key())
	if !ok {
		return Record{}, nil, l.corrupt(0, fmt.Sprintf("key %x is no event's", item.Key()), nil)
	}
	value, err = item.ValueCopy(nil)
	if err != nil {
		return Record{}, nil, l.corrupt(seq, "value cannot be read", err)
	}
	if len(value) == 0 {
		// Badger logs why a value cannot be read, and returns nothing.
		return Record{}, nil, l.corrupt(seq, "value cannot be read", nil)
	}
	r, err = decodeRecord(seq, value)
	if errors.Is(err, ErrNewerFormat) {
		return Record{}, nil, fmt.Errorf("log %s, event %d: %w", l.dir, seq, err)
	}
	if err != nil {
		return Record{}, nil, l.corrupt(seq, "record", err)
	}
	if typeCodes[r.Message.Type] != item.UserMeta() {
		return Record{}, nil, l.corrupt(seq, fmt.Sprintf("key says type %d, record says %q", item.UserMeta(), r.Message.Type), nil)
	}
	return r, value, nil
}
