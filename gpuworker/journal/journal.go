package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"codea1/events"
)

var (
	// ErrInUse is returned by Open when another process holds the journal.
	ErrInUse = errors.New("journal is in use by another process")
	// ErrClosed is returned by every call on a closed Journal.
	ErrClosed = errors.New("journal is closed")
)

// Options bounds a journal.
type Options struct {
	MaxEntries int   // messages kept; default 16,384, above what a bus delivers again after a crash
	MaxBytes   int64 // encoded bytes kept; default 1 GiB
}

func (o Options) withDefaults() Options {
	if o.MaxEntries == 0 {
		o.MaxEntries = 16 << 10
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	return o
}

// Two kinds of keys: an entry by event id, and the queue of ids in the order
// they came, which says what to drop next.
const (
	entryPrefix = 'e' // e<event id> -> record
	queuePrefix = 'q' // q<number, 8 bytes big-endian> -> size (8 bytes big-endian), event id
)

// valueLogBytes is the size of one value log file, and how much is dropped
// before space is reclaimed.
const valueLogBytes = 64 << 20

// Journal is safe for concurrent use.
type Journal struct {
	options Options

	mu      sync.Mutex
	db      *badger.DB // nil once closed
	oldest  uint64     // number of the oldest entry of the queue
	next    uint64     // number of the next entry
	bytes   int64      // sum of the sizes in the queue
	dropped int64      // bytes dropped since space was last reclaimed
}

// Open opens the journal in dir, which is made where it is missing.
func Open(dir string, options Options) (*Journal, error) {
	options = options.withDefaults()
	if options.MaxEntries < 1 || options.MaxBytes < 1 {
		return nil, fmt.Errorf("journal %s: limits must be positive", dir)
	}
	if err := removeEmptyFiles(dir); err != nil {
		return nil, fmt.Errorf("journal %s: %w", dir, err)
	}
	// Badger's defaults are for gigabytes of keys and take 1 to 2 GB of memory.
	// SyncWrites is off by default, and with it every promise of Put.
	db, err := badger.Open(badger.DefaultOptions(dir).
		WithLogger(nil).
		WithSyncWrites(true).
		WithDetectConflicts(false).
		WithCompression(0).
		WithValueThreshold(1 << 10).
		WithValueLogFileSize(valueLogBytes).
		WithMemTableSize(8 << 20).
		WithNumMemtables(2).
		WithNumCompactors(2).
		WithBlockCacheSize(4 << 20).
		WithIndexCacheSize(4 << 20))
	if err != nil {
		if strings.Contains(err.Error(), "Cannot acquire directory lock") {
			return nil, fmt.Errorf("journal %s: %w; stop it or choose another directory", dir, ErrInUse)
		}
		return nil, fmt.Errorf("journal %s: %w", dir, err)
	}
	j := &Journal{options: options, db: db}
	if err := j.count(); err != nil {
		return nil, fmt.Errorf("journal %s: %w", dir, errors.Join(err, db.Close()))
	}
	return j, nil
}

// count reads the queue's ends and sizes.
func (j *Journal) count() error {
	return j.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{queuePrefix}, PrefetchValues: false})
		defer it.Close()
		first := true
		for it.Rewind(); it.Valid(); it.Next() {
			number, size, _, err := queueItem(it.Item())
			if err != nil {
				return err
			}
			if first {
				j.oldest, first = number, false
			}
			j.next = number + 1
			j.bytes += size
		}
		return nil
	})
}

// Get returns the message journalled under an event id; false when there is
// none.
func (j *Journal) Get(id string) (events.Message, bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.db == nil {
		return events.Message{}, false, ErrClosed
	}
	var m events.Message
	err := j.db.View(func(txn *badger.Txn) error {
		item, err := txn.Get(entryKey(id))
		if err != nil {
			return err
		}
		return item.Value(func(raw []byte) (err error) {
			m, err = decodeRecord(raw)
			return err
		})
	})
	if errors.Is(err, badger.ErrKeyNotFound) {
		return events.Message{}, false, nil
	}
	if err != nil {
		return events.Message{}, false, fmt.Errorf("journal: event %s: %w", id, err)
	}
	return m, true, nil
}

// Put journals messages and returns once they are on disk. The first message
// of an id stands: another one under the same id changes nothing. When it
// fails, some of the messages may have been journalled.
func (j *Journal) Put(messages []events.Message) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.db == nil {
		return ErrClosed
	}
	txn := j.db.NewTransaction(true)
	defer func() { txn.Discard() }()
	next, size := j.next, j.bytes
	commit := func() error {
		if err := txn.Commit(); err != nil {
			return err
		}
		j.next, j.bytes = next, size
		return nil
	}
	for i := range messages {
		m := &messages[i]
		if _, err := txn.Get(entryKey(m.ID)); err == nil {
			continue
		} else if !errors.Is(err, badger.ErrKeyNotFound) {
			return fmt.Errorf("journal: event %s: %w", m.ID, err)
		}
		record, err := encodeRecord(m)
		if err != nil {
			return fmt.Errorf("journal: event %s: encode: %w", m.ID, err)
		}
		err = set(txn, next, m.ID, record)
		if errors.Is(err, badger.ErrTxnTooBig) {
			if err = commit(); err != nil {
				return fmt.Errorf("journal: %w", err)
			}
			txn = j.db.NewTransaction(true)
			err = set(txn, next, m.ID, record)
		}
		if err != nil {
			return fmt.Errorf("journal: event %s: %w", m.ID, err)
		}
		next++
		size += int64(len(record))
	}
	if err := commit(); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return j.trim()
}

// set writes the queue item before the entry: where a full transaction takes
// only the first, the queue item is written again with its entry, and never an
// entry without a place in the queue.
func set(txn *badger.Txn, number uint64, id string, record []byte) error {
	value := binary.BigEndian.AppendUint64(nil, uint64(len(record)))
	if err := txn.Set(queueKey(number), append(value, id...)); err != nil {
		return err
	}
	return txn.Set(entryKey(id), record)
}

// trim drops the oldest entries until the journal is within its bounds.
func (j *Journal) trim() error {
	const mostAtOnce = 1000 // keeps a transaction small
	for j.next-j.oldest > uint64(j.options.MaxEntries) || j.bytes > j.options.MaxBytes {
		oldest, size := j.oldest, j.bytes
		err := j.db.Update(func(txn *badger.Txn) error {
			for range mostAtOnce {
				if j.next-oldest <= uint64(j.options.MaxEntries) && size <= j.options.MaxBytes {
					return nil
				}
				item, err := txn.Get(queueKey(oldest))
				if err != nil {
					return err
				}
				_, bytes, id, err := queueItem(item)
				if err != nil {
					return err
				}
				if err := errors.Join(txn.Delete(entryKey(id)), txn.Delete(queueKey(oldest))); err != nil {
					return err
				}
				oldest++
				size -= bytes
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("journal: drop the oldest entries: %w", err)
		}
		j.dropped += j.bytes - size
		j.oldest, j.bytes = oldest, size
	}
	if j.dropped < valueLogBytes {
		return nil
	}
	j.dropped = 0
	// At most one file is rewritten: a pause of one file's copy, not of all.
	if err := j.db.RunValueLogGC(0.5); err != nil && !errors.Is(err, badger.ErrNoRewrite) {
		return fmt.Errorf("journal: reclaim space: %w", err)
	}
	return nil
}

// Close releases the directory. Closing twice is closing once.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.db == nil {
		return nil
	}
	err := j.db.Close()
	j.db = nil
	return err
}

func entryKey(id string) []byte { return append([]byte{entryPrefix}, id...) }

func queueKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{queuePrefix}, number)
}

func queueItem(item *badger.Item) (number uint64, size int64, id string, err error) {
	key := item.Key()
	if len(key) != 9 {
		return 0, 0, "", fmt.Errorf("queue key of %d bytes", len(key))
	}
	number = binary.BigEndian.Uint64(key[1:])
	err = item.Value(func(v []byte) error {
		if len(v) < 8 || binary.BigEndian.Uint64(v) > math.MaxInt64 {
			return fmt.Errorf("queue item %d is malformed", number)
		}
		size, id = int64(binary.BigEndian.Uint64(v)), string(v[8:])
		return nil
	})
	return number, size, id, err
}
