package badgerdir

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// ValueThreshold is the size in bytes from which Badger puts a value into its
// value log. A batch of smaller values needs one sync, of the write-ahead log of
// the tables; a batch of larger ones needs two, but tables and compactions never
// copy them.
const ValueThreshold = 1 << 10

// Options configures a store.
type Options struct {
	Logger  *slog.Logger
	Scratch bool // a small store that syncs nothing, for tests
}

// Tuned returns Badger's options for one writer of large, compressed, immutable
// values in little memory. Badger's defaults take over a gigabyte and do not
// sync.
func Tuned(dir string, o Options) badger.Options {
	tuned := badger.DefaultOptions(dir).
		WithSyncWrites(true).
		WithDetectConflicts(false).    // one writer
		WithCompression(options.None). // payloads are compressed already
		WithValueThreshold(ValueThreshold).
		WithValueLogFileSize(64 << 20).
		WithMemTableSize(32 << 20).
		WithNumMemtables(2).
		WithNumCompactors(2).
		// Few levels: values in the tables are copied less often.
		WithBaseLevelSize(256 << 20).
		WithBlockCacheSize(16 << 20).
		WithIndexCacheSize(32 << 20).
		WithVerifyValueChecksum(true).
		// Verification on opening a table would read the whole table.
		WithChecksumVerificationMode(options.OnBlockRead).
		WithMetricsEnabled(false).
		WithLogger(logger{o.Logger})
	if o.Scratch {
		return tuned.WithMemTableSize(1 << 20).WithSyncWrites(false)
	}
	return tuned
}

// Open opens a directory for writing. It returns a *LockedError while another
// process has it open, and a *DamageError for one that Badger cannot read.
func Open(dir string, o Options) (*badger.DB, error) {
	if err := removeEmptyFiles(dir); err != nil {
		return nil, openError(dir, err)
	}
	db, err := OpenReleased(Tuned(dir, o))
	if err != nil {
		return nil, openError(dir, err)
	}
	return db, nil
}

// Snapshot is a copy of a directory, open for reading.
type Snapshot struct {
	DB *badger.DB
	// Cut reports that Badger has cut the newest value log of a rehearsal.
	Cut    bool
	Remove func() error // removes the copy; call it after DB.Close
}

// OpenSnapshot opens a copy of the directory as it is now. For a rehearsal
// Badger repairs the copy as it would repair the directory of a writer. It
// returns a *DamageError for damage that Badger would not report: a truncated
// table or manifest, and a write-ahead log with a damaged entry before whole
// transactions.
func OpenSnapshot(dir string, o Options, rehearsal bool) (Snapshot, error) {
	copied, repairable, remove, err := snapshot(dir, rehearsal)
	if err != nil {
		return Snapshot{}, err
	}
	s, err := openCopy(dir, copied, o, rehearsal, repairable)
	if err != nil {
		return Snapshot{}, errors.Join(err, remove())
	}
	s.Remove = remove
	return s, nil
}

func openCopy(dir, copied string, o Options, rehearsal, repairable bool) (Snapshot, error) {
	// The write-ahead log of a live or a killed writer ends within an entry.
	// Badger reads it only after a repair.
	if err := removeEmptyFiles(copied); err != nil {
		return Snapshot{}, openError(dir, err)
	}
	tuned := Tuned(copied, o).WithReadOnly(!repairable).WithNumCompactors(0).WithSyncWrites(false)
	left, err := checkTables(copied, tuned)
	if err == nil && !isLocked(dir) {
		err = checkWriteAheadLogs(copied)
	}
	if err != nil {
		return Snapshot{}, &DamageError{Reason: "cannot be opened", Err: err}
	}
	newest, end := "", int64(0)
	if rehearsal {
		if newest, end, err = ValueLogEnd(copied); err != nil {
			return Snapshot{}, openError(dir, err)
		}
	}
	db, err := badger.Open(tuned)
	if err != nil {
		return Snapshot{}, openError(dir, err)
	}
	if left.version > db.MaxVersion() {
		err := &DamageError{Reason: fmt.Sprintf("the manifest is cut off: it does not name table %s, which has the newest transaction", left.name)}
		return Snapshot{}, errors.Join(err, db.Close())
	}
	return Snapshot{DB: db, Cut: newest != "" && isShorter(newest, end)}, nil
}

// logger passes on Badger's messages; its info messages are debug messages
// here.
type logger struct{ to *slog.Logger }

func (l logger) log(level slog.Level, format string, args []any) {
	if l.to.Enabled(context.Background(), level) {
		l.to.Log(context.Background(), level, "badger: "+strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
}

func (l logger) Errorf(format string, args ...any)   { l.log(slog.LevelError, format, args) }
func (l logger) Warningf(format string, args ...any) { l.log(slog.LevelWarn, format, args) }
func (l logger) Infof(format string, args ...any)    { l.log(slog.LevelDebug, format, args) }
func (l logger) Debugf(string, ...any)               {}
