package eventlog

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/dgraph-io/badger/v4"

	"codea1/events"
	"codea1/replay/eventlog/internal/badgerdir"
	"codea1/replay/mistakes"
	"codea1/replay/state"
)

// Options configures a Log.
type Options struct {
	// ReadOnly opens an existing log as it stands, in a snapshot: whatever the
	// run does meanwhile, it is not disturbed and does not show.
	ReadOnly bool
	// ReserveBytes is the free space below which Append refuses to write,
	// DefaultReserveBytes if 0.
	ReserveBytes uint64
	// Logger hears what the store does; nil discards it.
	Logger *slog.Logger

	// Scratch makes a store that opens fast and syncs nothing, for tests.
	Scratch bool

	rehearsal   bool   // with ReadOnly: Badger repairs the snapshot as it would repair a writer's store
	chunkEvents uint64 // replaces chunkEvents, unless 0
}

// DefaultReserveBytes covers the files Badger has mapped and not yet filled,
// and a compaction. Running into a full disk inside one of those would kill
// the process with SIGBUS instead of giving an error.
const DefaultReserveBytes = 256 << 20

// closeBytes is set aside while a log is open for writing and given back when it
// closes, so that it can write out what is in memory even on a disk that others
// have filled to the last byte: a table is at most this large, and its copy.
const closeBytes = 64 << 20

// Log is the event log of a run and the Mistake Book that follows from it. All
// methods are safe for concurrent use.
type Log struct {
	dir     string
	options Options
	db      *badger.DB
	remove  func() error // what a reader's snapshot leaves
	cut     bool         // Badger has cut the newest value log of a rehearsal's snapshot
	release func() error // what is set aside for closing
	free    func(dir string) (uint64, error)

	compacting sync.Mutex   // held by Compact, taken before committing
	collecting sync.RWMutex // held for reading by who follows a pointer into the value log without an iterator

	// admitting guards what a batch stands behind; it is held while one is
	// admitted, and taken before committing.
	admitting sync.Mutex
	tail      tail
	refuses   bool                       // there may be refusals
	seen      *seen                      // nil until the first batch
	ahead     atomic.Pointer[badger.Txn] // shows what was on disk before the batch on its way

	committing sync.Mutex // held by who writes to the store, until the disk has it
	failed     error      // the failed commit after which nothing is appended

	// recent are the events that no chunk of the index has yet, and those that
	// the last one took. It is read when it is needed first.
	recent     *places
	recentOnce sync.Once
	recentErr  error
	indexed    uint64 // up to where chunks have the event IDs; committing guards it

	// mu guards what follows. A commit holds it until the disk has it, so that
	// nobody acts on what a crash could still take back.
	mu   sync.RWMutex
	head head
	bare bare
	book *mistakes.Book

	state  *state.State // at head; nil in a log that is open for reading. committing guards it, too
	stored uint64       // event at which the state was to be stored last
	// storedBytes is how large it was then, 0 until this log has looked.
	storedBytes uint64

	usersMu sync.Mutex
	users   sync.WaitGroup
	closed  bool

	background sync.WaitGroup
	closing    atomic.Bool // ends what runs in the background
}

// head is where the log ends.
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

// Dir returns the directory of the log within a run's directory.
func Dir(run string) string { return filepath.Join(run, "log") }

// Exists reports whether dir holds a log.
func Exists(dir string) bool { return badgerdir.Exists(dir) }

// DiskUsage returns how many bytes of the disk the log in dir takes. That is
// less than the sum of the file sizes: the files have holes.
func DiskUsage(dir string) uint64 { return badgerdir.Usage(dir) }

// Open opens the log in dir and brings the Mistake Book to its end. Unless
// Options.ReadOnly, it makes the directory if need be, and returns an
// *InUseError while another Log has dir open for writing. It returns a *CorruptError for a directory
// that Badger or this package cannot make sense of, a *DiskFullError when there
// is too little room to write, ErrNoLog and ErrNewerFormat.
func Open(dir string, options Options) (*Log, error) {
	if options.ReserveBytes == 0 {
		options.ReserveBytes = DefaultReserveBytes
	}
	options.chunkEvents = cmp.Or(options.chunkEvents, chunkEvents)
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Log{dir: dir, options: options, free: badgerdir.Free, book: mistakes.New(), recent: newPlaces(), release: func() error { return nil }}
	if options.ReadOnly {
		if !Exists(dir) {
			return nil, fmt.Errorf("%w: %s", ErrNoLog, dir)
		}
	} else {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("open log: %w", err)
		}
		if err := l.checkSpace(0); err != nil {
			return nil, err
		}
		if err := badgerdir.CheckUnlocked(dir); err != nil {
			return nil, openError(dir, err)
		}
		if err := rehearse(dir, options); err != nil {
			return nil, err
		}
	}
	if err := l.openStore(); err != nil {
		return nil, err
	}
	err := l.load()
	if err == nil && !options.ReadOnly && !options.Scratch {
		err = l.setAside()
	}
	if err != nil {
		return nil, errors.Join(err, l.db.Close(), l.remove())
	}
	return l, nil
}

// openStore opens Badger: a snapshot for reading, the directory for writing.
func (l *Log) openStore() error {
	o := badgerdir.Options{Logger: l.options.Logger, Scratch: l.options.Scratch}
	if !l.options.ReadOnly {
		db, err := badgerdir.Open(l.dir, o)
		if err != nil {
			return openError(l.dir, err)
		}
		l.db, l.remove = db, func() error { return nil }
		return nil
	}
	s, err := badgerdir.OpenSnapshot(l.dir, o, l.options.rehearsal)
	if err != nil {
		return openError(l.dir, err)
	}
	l.db, l.cut, l.remove = s.DB, s.Cut, s.Remove
	return nil
}

// rehearse opens a copy of the directory as a writer would. Badger then cuts the
// newest value log after the last entry with a correct checksum. After a torn
// write that loses nothing; after a flipped byte it loses all later entries. The
// rehearsal finds that damage while it is one byte, and it finds a lost
// manifest: without one Badger deletes all tables.
func rehearse(dir string, o Options) error {
	o.ReadOnly, o.rehearsal = true, true
	l, err := Open(dir, o)
	if errors.Is(err, ErrNoLog) {
		if err := badgerdir.CheckManifest(dir); err != nil {
			return openError(dir, err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	return l.Close()
}

func (l *Log) setAside() error {
	release, err := badgerdir.Reserve(l.dir, closeBytes)
	if badgerdir.Caused(err, syscall.ENOSPC) {
		return l.commitError(err)
	}
	if err != nil {
		return fmt.Errorf("log %s: set space aside: %w", l.dir, err)
	}
	l.release = release
	return nil
}

// Close waits for the calls in progress and closes the log. Closing it again
// does nothing.
func (l *Log) Close() error {
	l.usersMu.Lock()
	closed := l.closed
	l.closed = true
	l.usersMu.Unlock()
	if closed {
		return nil
	}
	l.users.Wait()
	l.closing.Store(true)
	l.background.Wait()
	err := l.release()
	// Without it the next opener folds what is missing.
	if l.state != nil && l.failed == nil && l.checkSpace(0) == nil {
		err = errors.Join(err, l.storeState(true), l.storeChunk(true))
	}
	if err := errors.Join(err, l.db.Close(), l.remove()); err != nil {
		return fmt.Errorf("close log %s: %w", l.dir, err)
	}
	return nil
}

// use keeps the store open until the returned function is called.
func (l *Log) use() (done func(), err error) {
	l.usersMu.Lock()
	defer l.usersMu.Unlock()
	if l.closed {
		return nil, fmt.Errorf("log %s: %w", l.dir, ErrClosed)
	}
	l.users.Add(1)
	return l.users.Done, nil
}

// Dir returns the directory of the log.
func (l *Log) Dir() string { return l.dir }

// Last returns the sequence number and the chain hash of the last event, zero
// for an empty log.
func (l *Log) Last() (seq uint64, chain Hash) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.head.seq, l.head.chain
}

// Position returns the bus position up to which the log holds every event.
func (l *Log) Position() events.Position {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.head.position
}

// Get returns the event with an ID, or ErrNotFound.
func (l *Log) Get(ctx context.Context, id string) (Record, error) {
	done, err := l.use()
	if err != nil {
		return Record{}, err
	}
	defer done()
	if err := ctx.Err(); err != nil {
		return Record{}, err
	}
	key := parseID(id)
	seq, err := l.lookup(key)
	if err != nil {
		return Record{}, err
	}
	// An ID that is no ID is not found either.
	if seq == 0 || key.String() != id {
		return Record{}, fmt.Errorf("event %s: %w", id, ErrNotFound)
	}
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	return l.recordOf(txn, key, seq)
}

// Has reports whether the log has the event with an ID.
func (l *Log) Has(id string) (bool, error) {
	done, err := l.use()
	if err != nil {
		return false, err
	}
	defer done()
	seq, err := l.lookup(parseID(id))
	return seq != 0, err
}

// checkSpace refuses to write when the disk is nearly full.
func (l *Log) checkSpace(payloadBytes uint64) error {
	free, err := l.free(l.dir)
	if err != nil {
		return fmt.Errorf("log %s: free space: %w", l.dir, err)
	}
	if need := l.options.ReserveBytes + payloadBytes; free < need {
		return &DiskFullError{Dir: l.dir, FreeBytes: free, NeedBytes: need}
	}
	return nil
}

func (l *Log) corrupt(seq uint64, reason string, err error) error {
	return &CorruptError{Dir: l.dir, Seq: seq, Reason: reason, Err: err}
}
