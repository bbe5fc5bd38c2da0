package replay

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/dgraph-io/badger/v4"
)

// Up to format 3 the index had a key for each event: its ID, and under it
// sequence number and payload hash. A reader takes it as it is, the first writer
// makes one chunk of it.

func singleKey(id eventID) []byte { return append([]byte{spaceIDs}, id[:]...) }

func decodeSingle(key, value []byte) (indexEntry, error) {
	if len(key) != 1+len(eventID{}) || len(value) != 8+len(Hash{}) {
		return indexEntry{}, errRecord
	}
	return indexEntry{eventID(key[1:]), binary.BigEndian.Uint64(value)}, nil
}

// lookupSingle is lookupStored in a log of these formats.
func (l *Log) lookupSingle(txn *badger.Txn, id eventID) (seq uint64, err error) {
	key := singleKey(id)
	raw, err := get(txn, key)
	if err == nil && raw == nil {
		return 0, nil
	}
	var e indexEntry
	if err == nil {
		e, err = decodeSingle(key, raw)
	}
	if err != nil {
		return 0, l.corrupt(0, "index of "+id.String()+" cannot be read", err)
	}
	return e.seq, nil
}

// singles is indexEntries in a log of these formats, in the order of the IDs.
func (l *Log) singles(txn *badger.Txn) iter.Seq2[indexEntry, error] {
	return func(yield func(indexEntry, error) bool) {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceIDs}})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			var e indexEntry
			err := it.Item().Value(func(value []byte) (err error) {
				e, err = decodeSingle(it.Item().Key(), value)
				return err
			})
			if err != nil {
				err = l.corruptIndex(it.Item(), err)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// addChunk makes one chunk of the keys.
func (l *Log) addChunk() error {
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	return l.writeChunk(1, l.head.seq, l.singles(txn))
}

// dropSingles takes away the keys that a chunk has replaced.
func (l *Log) dropSingles(txn *badger.Txn) error {
	if !anyKey(txn, spaceIDs) {
		return nil
	}
	if err := l.db.DropPrefix([]byte{spaceIDs}); err != nil {
		return fmt.Errorf("upgrade log %s: %w", l.dir, err)
	}
	return nil
}
