package eventlog

import (
	"cmp"
	"context"
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
	"codea1/events/files"
	"codea1/replay/eventlog/internal/badgerdir"
	"codea1/replay/mistakes"
	"codea1/replay/state"
)

// Options configures a Log.
type Options struct {
	// ReadOnly opens a snapshot of an existing log. The run can write meanwhile;
	// the snapshot does not change.
	ReadOnly bool
	Logger   *slog.Logger // nil discards
	// Scratch makes a store that opens fast and syncs nothing, for tests.
	Scratch bool

	rehearsal   bool                             // with ReadOnly: Badger repairs the snapshot as it would repair a writer's store
	chunkEvents uint64                           // replaces the constant chunkEvents, unless 0
	free        func(dir string) (uint64, error) // replaces files.Free, for tests of a full disk
	noFilter    bool                             // every new ID is looked up, for the benchmark of the filter
}

// reserveBytes is the free space below which Append refuses to write. It covers the
// files that Badger has mapped and not yet filled, and a compaction of its tables:
// if the disk became full under a mapped file, SIGBUS would kill the process.
const reserveBytes = 256 << 20

// closeBytes is reserved on the disk while a log is open for writing and freed
// when it closes, so that its memory can be written even if other programs fill
// the disk. It is the size of the largest table and a copy of it.
const closeBytes = 64 << 20

// Log is the event log of a run, with the Mistake Book and the state of the run
// that follow from it. All methods are safe for concurrent use.
type Log struct {
	dir     string
	options Options
	db      *badger.DB
	remove  func() error // removes a reader's snapshot
	cut     bool         // Badger has cut the newest value log of a rehearsal's snapshot
	release func() error // frees the space reserved for closing

	// The mutexes are locked in this order: compacting, admitting, committing, mu.

	compacting sync.Mutex   // held by Compact
	collecting sync.RWMutex // held for reading while a pointer into the value log is read without an iterator

	admitting sync.Mutex // guards the fields up to ahead
	tail      tail
	refuses   bool                       // the log may have refusals
	filter    *filter                    // nil until the first batch
	ahead     atomic.Pointer[badger.Txn] // a transaction that began before the commit in progress

	committing sync.Mutex // held while the store is written, until the disk has it
	failed     error      // a failed commit; the log takes no more events

	recent     *recent // read at the first lookup
	recentOnce sync.Once
	recentErr  error
	indexed    uint64 // last event in a chunk; guarded by committing

	// mu guards the fields up to storedBytes. A commit holds it until the disk has
	// the events, so that no caller acts on events that a crash could remove.
	mu          sync.RWMutex
	head        head
	compacted   compacted
	quarantine  Quarantine
	book        *mistakes.Book
	state       *state.State // nil in a log that is open for reading; committing guards it, too
	stored      uint64       // event at which the last snapshot of the state was due
	storedBytes uint64       // its size, 0 if this Log has not stored one

	usersMu sync.Mutex
	users   sync.WaitGroup // calls in progress
	closed  bool

	background sync.WaitGroup
	closing    atomic.Bool // ends background work
}

// Dir returns the directory of the log within a run's directory.
func Dir(run string) string { return filepath.Join(run, "log") }

// Exists reports whether dir holds a log.
func Exists(dir string) bool { return badgerdir.Exists(dir) }

// DiskUsage returns how many bytes of the disk the log in dir takes. That is
// less than the sum of the file sizes: the files have holes.
func DiskUsage(dir string) uint64 { return badgerdir.Usage(dir) }

// Open opens the log in dir. For writing it creates the directory if necessary,
// and returns an *InUseError while another Log has it open for writing. Other
// errors are *CorruptError for damage, *DiskFullError, ErrNoLog and
// ErrNewerFormat.
func Open(dir string, options Options) (*Log, error) {
	options.chunkEvents = cmp.Or(options.chunkEvents, chunkEvents)
	if options.free == nil {
		options.free = files.Free
	}
	options.Logger = cmp.Or(options.Logger, slog.New(slog.DiscardHandler))
	none := func() error { return nil }
	l := &Log{dir: dir, options: options, book: mistakes.New(), recent: newRecent(), remove: none, release: none}
	if options.ReadOnly {
		if !Exists(dir) {
			return nil, fmt.Errorf("%w: %s", ErrNoLog, dir)
		}
	} else if err := l.prepareWriter(); err != nil {
		return nil, err
	}
	if err := l.openStore(); err != nil {
		return nil, err
	}
	err := l.load()
	if err == nil && !options.ReadOnly && !options.Scratch {
		err = l.reserve()
	}
	if err != nil {
		return nil, errors.Join(err, l.db.Close(), l.remove())
	}
	return l, nil
}

// prepareWriter checks everything that a writer would destroy by opening the
// store.
func (l *Log) prepareWriter() error {
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	if err := l.checkSpace(0); err != nil {
		return err
	}
	if err := badgerdir.CheckUnlocked(l.dir); err != nil {
		return openError(l.dir, err)
	}
	return rehearse(l.dir, l.options)
}

// openStore opens Badger: a snapshot for reading, the directory for writing.
func (l *Log) openStore() error {
	o := badgerdir.Options{Logger: l.options.Logger, Scratch: l.options.Scratch}
	if !l.options.ReadOnly {
		db, err := badgerdir.Open(l.dir, o)
		if err != nil {
			return openError(l.dir, err)
		}
		l.db = db
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

// reserve reserves the space for closing.
func (l *Log) reserve() error {
	release, err := badgerdir.Reserve(l.dir, closeBytes)
	if badgerdir.Caused(err, syscall.ENOSPC) {
		return l.commitError(err)
	}
	if err != nil {
		return fmt.Errorf("log %s: reserve space: %w", l.dir, err)
	}
	l.release = release
	return nil
}

// Close waits for the calls in progress and closes the log. A second call does
// nothing.
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
	// The next opener computes a state or an index that is not stored.
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
	if seq == 0 || key.String() != id { // the second for a malformed ID
		return Record{}, fmt.Errorf("event %s: %w", id, ErrNotFound)
	}
	v := view{l, l.db.NewTransaction(false)} // begun after the lookup, so it has the event
	defer v.txn.Discard()
	return v.recordOf(key, seq)
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

// checkSpace returns a *DiskFullError if the disk has no room for a payload.
func (l *Log) checkSpace(payloadBytes uint64) error {
	free, err := l.options.free(l.dir)
	if err != nil {
		return fmt.Errorf("log %s: free space: %w", l.dir, err)
	}
	if need := reserveBytes + payloadBytes; free < need {
		return &DiskFullError{Dir: l.dir, FreeBytes: free, NeedBytes: need}
	}
	return nil
}

func (l *Log) corrupt(seq uint64, reason string, err error) error {
	return &CorruptError{Dir: l.dir, Seq: seq, Reason: reason, Err: err}
}
