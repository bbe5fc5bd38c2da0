package eventlog

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"codea1/events"
)

// view is the log as one transaction of the store shows it. Nothing that is
// committed later appears in it.
type view struct {
	log *Log
	txn *badger.Txn
}

// view returns a view of the log. The store stays open until close is called.
func (l *Log) view() (v view, closeView func(), err error) {
	done, err := l.use()
	if err != nil {
		return view{}, nil, err
	}
	v = view{l, l.db.NewTransaction(false)}
	return v, func() { v.txn.Discard(); done() }, nil
}

// get returns a copy of a key's value, nil if the key does not exist.
func (v view) get(key []byte) ([]byte, error) {
	item, err := v.txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return item.ValueCopy(nil)
}

// has reports whether a key space holds a key.
func (v view) has(space byte) bool {
	it := v.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{space}})
	defer it.Close()
	it.Rewind()
	return it.Valid()
}

// event returns the item of the event with a sequence number.
func (v view) event(seq uint64) (*badger.Item, error) {
	item, err := v.txn.Get(eventKey(seq))
	if err != nil {
		return nil, v.log.corrupt(seq, "event is missing", err)
	}
	return item, nil
}

// record decodes the event of an item; value is its encoded form.
func (v view) record(item *badger.Item) (r Record, value []byte, err error) {
	seq, ok := seqOf(item.Key())
	if !ok {
		return Record{}, nil, v.log.corrupt(0, fmt.Sprintf("key %x is not an event's", item.Key()), nil)
	}
	value, err = item.ValueCopy(nil)
	// For a value that it cannot read, Badger logs the reason and returns
	// nothing.
	if err != nil || len(value) == 0 {
		return Record{}, nil, v.log.corrupt(seq, "value cannot be read", err)
	}
	r, err = decodeRecord(seq, value)
	if errors.Is(err, ErrNewerFormat) {
		return Record{}, nil, fmt.Errorf("log %s, event %d: %w", v.log.dir, seq, err)
	}
	if err != nil {
		return Record{}, nil, v.log.corrupt(seq, "record", err)
	}
	if typeCodes[r.Message.Type] != item.UserMeta() {
		return Record{}, nil, v.log.corrupt(seq, fmt.Sprintf("key says type %d, record says %q", item.UserMeta(), r.Message.Type), nil)
	}
	return r, value, nil
}

// head is the end of the log.
type head struct {
	seq      uint64
	chain    Hash
	position events.Position
}

func (h *head) encode() []byte {
	b := binary.BigEndian.AppendUint64(nil, h.seq)
	b = append(b, h.chain[:]...)
	return append(b, h.position...)
}

func decodeHead(b []byte) (h head, ok bool) {
	if len(b) < 8+len(h.chain) {
		return head{}, false
	}
	h.seq = binary.BigEndian.Uint64(b)
	copy(h.chain[:], b[8:])
	h.position = events.Position(b[8+len(h.chain):])
	return h, true
}

// head returns the end of the log.
func (v view) head() (head, error) {
	raw, err := v.get(keyHead)
	if err != nil {
		return head{}, v.log.corrupt(0, "head cannot be read", err)
	}
	if raw == nil {
		return head{}, nil
	}
	h, ok := decodeHead(raw)
	if !ok {
		return head{}, v.log.corrupt(0, "head is malformed", nil)
	}
	return h, nil
}
