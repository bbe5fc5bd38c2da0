package replay

import (
	"encoding/binary"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// Before format 4 the index had a key for each event: its ID, and under it
// sequence number and payload hash. A reader takes it as it is, the first writer
// makes one chunk of it.

func singleKey(id eventID) []byte { return append([]byte{spaceIDs}, id[:]...) }

func decodeSingle(key, value []byte) (indexed, error) {
	if len(key) != 1+len(eventID{}) || len(value) != 8+len(Hash{}) {
		return indexed{}, errRecord
	}
	return indexed{eventID(key[1:]), binary.BigEndian.Uint64(value)}, nil
}

func (l *Log) findSingle(txn *badger.Txn, id eventID) (seq uint64, err error) {
	key := singleKey(id)
	raw, err := get(txn, key)
	if err == nil && raw == nil {
		return 0, nil
	}
	if err == nil {
		var e indexed
		e, err = decodeSingle(key, raw)
		seq = e.seq
	}
	if err != nil {
		return 0, l.corrupt(0, "index of "+id.String()+" cannot be read", err)
	}
	return seq, nil
}

// eachSingle goes through the index in the order of the IDs.
func (l *Log) eachSingle(txn *badger.Txn, visit func(indexed) error) error {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceIDs}})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		var e indexed
		err := it.Item().Value(func(value []byte) (err error) {
			e, err = decodeSingle(it.Item().Key(), value)
			return err
		})
		if err != nil {
			return l.corruptIndex(it.Item(), err)
		}
		if err := visit(e); err != nil {
			return err
		}
	}
	return nil
}

// addChunk makes one chunk of the index of an older format.
func (l *Log) addChunk() error {
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	return l.writeChunk(1, l.head.seq, func(add func(indexed) error) error { return l.eachSingle(txn, add) })
}

// dropSingles takes away what a chunk has replaced.
func (l *Log) dropSingles(txn *badger.Txn) error {
	if !anyKey(txn, spaceIDs) {
		return nil
	}
	if err := l.db.DropPrefix([]byte{spaceIDs}); err != nil {
		return fmt.Errorf("upgrade log %s: %w", l.dir, err)
	}
	return nil
}
