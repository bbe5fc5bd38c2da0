package eventlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"codea1/events"
	"codea1/replay/mistakes"
)

// Book is the Mistake Book after the last committed event. It follows the log
// and is safe for concurrent use.
type Book struct {
	mu   *sync.RWMutex
	book *mistakes.Book
}

// Book returns the Mistake Book.
func (l *Log) Book() *Book { return &Book{&l.mu, l.book} }

// Top returns the k most frequent tests of a problem, ties in the order they
// entered.
func (b *Book) Top(problemID string, k int) []events.HistoricalTest {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.book.Top(problemID, k)
}

// Tests returns the tests of a problem in the order they entered.
func (b *Book) Tests(problemID string) []mistakes.Entry {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.book.Tests(problemID)
}

// Problems returns the IDs of the problems that have tests, sorted.
func (b *Book) Problems() []string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.book.Problems()
}

// Size returns the number of tests.
func (b *Book) Size() int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.book.Size()
}

// Encode returns the state of the book; equal books have equal bytes.
func (b *Book) Encode() []byte {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.book.Encode()
}

// BookAt returns the Mistake Book as it was after event seq, computed from the
// log alone.
func (l *Log) BookAt(ctx context.Context, seq uint64) (*mistakes.Book, error) {
	v, closeView, err := l.view()
	if err != nil {
		return nil, err
	}
	defer closeView()
	return v.bookAt(ctx, seq)
}

// bookState describes the stored entries. They are used only if the description
// is correct and ends with the log.
type bookState struct {
	seq    uint64 // last event applied
	size   uint64
	digest mistakes.Digest
}

func (s *bookState) encode() []byte {
	b := binary.BigEndian.AppendUint64([]byte{mistakes.Version}, s.seq)
	b = binary.BigEndian.AppendUint64(b, s.size)
	return append(b, s.digest.Bytes()...)
}

// writeBook adds the changes of the book up to event seq to txn, or marks the
// stored book as stale.
func (l *Log) writeBook(txn *badger.Txn, seq uint64, changes []mistakes.Change, stored bool) error {
	if !stored {
		return txn.Delete(keyBook)
	}
	for _, c := range changes {
		key := bookKey(c.ProblemID, c.Order)
		var err error
		if c.Count == 0 {
			err = txn.Delete(key)
		} else {
			err = txn.Set(key, c.Append(nil))
		}
		if err != nil {
			return err
		}
	}
	state := bookState{seq, uint64(l.book.Size()), l.book.Digest()}
	return txn.Set(keyBook, state.encode())
}

var (
	errAbsent = errors.New("no mistake book is stored")
	errStale  = errors.New("stored mistake book does not match the log")
)

// loadBook reads the stored book, or rebuilds it if the stored one is not that
// of the log's end.
func (l *Log) loadBook(v view) error {
	book, err := v.book(l.head.seq)
	if err == nil {
		l.book = book
		return nil
	}
	if l.head.seq > 0 {
		l.options.Logger.Info("rebuild the mistake book from the log", "dir", l.dir, "reason", err)
	}
	if l.book, err = v.bookAt(context.Background(), l.head.seq); err != nil {
		return err
	}
	if l.options.ReadOnly {
		return nil
	}
	if err := l.storeBook(); err != nil {
		return fmt.Errorf("store the mistake book of log %s: %w", l.dir, err)
	}
	return nil
}

// book returns the stored book. The error is errAbsent if there is none, and
// another error if it is damaged or not that of event seq.
func (v view) book(seq uint64) (*mistakes.Book, error) {
	state, err := v.get(keyBook)
	if err != nil {
		return nil, err
	}
	if state == nil {
		return nil, errAbsent
	}
	book := mistakes.New()
	it := v.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceBook}})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		err := it.Item().Value(func(value []byte) error {
			e, rest, err := mistakes.DecodeEntry(value)
			if err != nil {
				return err
			}
			if len(rest) > 0 || !bytes.Equal(it.Item().Key(), bookKey(e.ProblemID, e.Order)) {
				return fmt.Errorf("%w: a test of %q has the wrong key", errStale, e.ProblemID)
			}
			return book.Add(e)
		})
		if err != nil {
			return nil, err
		}
	}
	have := bookState{seq, uint64(book.Size()), book.Digest()}
	if !bytes.Equal(state, have.encode()) {
		return nil, fmt.Errorf("%w: it is that of another event", errStale)
	}
	return book, nil
}

// storeBook replaces the stored book. Its description is deleted first and
// written last, so that a part of the entries is never used.
func (l *Log) storeBook() error {
	if err := l.db.Update(func(txn *badger.Txn) error { return txn.Delete(keyBook) }); err != nil {
		return err
	}
	batch := l.db.NewWriteBatch()
	defer batch.Cancel()
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceBook}})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if err := batch.Delete(it.Item().KeyCopy(nil)); err != nil {
			return err
		}
	}
	for e := range l.book.All() {
		if err := batch.Set(bookKey(e.ProblemID, e.Order), e.Append(nil)); err != nil {
			return err
		}
	}
	if err := batch.Flush(); err != nil {
		return err
	}
	return l.db.Update(func(txn *badger.Txn) error { return l.writeBook(txn, l.head.seq, nil, true) })
}
