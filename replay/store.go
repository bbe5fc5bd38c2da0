package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// valueThreshold is the size from which a value lies in Badger's value log, in
// bytes. A batch of smaller ones is synced once, into the write-ahead log of the
// tables; of larger ones twice, but neither tables nor compactions copy them.
const valueThreshold = 1 << 10

// storeOptions is Badger tuned for one writer of large, compressed, immutable
// values within a small memory. Its defaults take over a gigabyte and do not
// sync.
func storeOptions(dir string, o *Options) badger.Options {
	tuned := badger.DefaultOptions(dir).
		WithReadOnly(o.ReadOnly).
		WithSyncWrites(true).
		WithDetectConflicts(false).    // one writer
		WithCompression(options.None). // payloads are compressed already
		WithValueThreshold(valueThreshold).
		WithValueLogFileSize(64 << 20).
		WithMemTableSize(32 << 20).
		WithNumMemtables(2).
		WithNumCompactors(2).
		// Few levels: what stays in the tables, small events above all, is copied
		// less often.
		WithBaseLevelSize(256 << 20).
		WithBlockCacheSize(16 << 20).
		WithIndexCacheSize(32 << 20).
		WithVerifyValueChecksum(true).
		// Not when a table is opened: that would read them all.
		WithChecksumVerificationMode(options.OnBlockRead).
		WithMetricsEnabled(false).
		WithLogger(storeLogger{o.Logger})
	if o.scratch {
		return tuned.WithMemTableSize(1 << 20).WithSyncWrites(false)
	}
	return tuned
}

// openStore opens Badger, to read from a snapshot and to write in place.
func (l *Log) openStore() error {
	if !l.options.ReadOnly {
		if err := removeEmptyFiles(l.dir); err != nil {
			return openError(l.dir, err)
		}
		db, err := badger.Open(storeOptions(l.dir, &l.options))
		if err != nil {
			return openError(l.dir, err)
		}
		l.db, l.remove = db, func() error { return nil }
		return nil
	}
	copied, repairable, remove, err := snapshot(l.dir, l.options.rehearsal)
	if err != nil {
		return err
	}
	// What a live or a killed run leaves ends in the middle of a write-ahead
	// log, which Badger reads only after it has put it in order.
	if err := removeEmptyFiles(copied); err != nil {
		return errors.Join(openError(l.dir, err), remove())
	}
	o := storeOptions(copied, &l.options).WithReadOnly(!repairable).WithNumCompactors(0).WithSyncWrites(false)
	left, err := checkTables(copied, o)
	if err != nil {
		return errors.Join(l.corrupt(0, "cannot be opened", err), remove())
	}
	if !isWritten(l.dir) {
		if err := checkWriteAheadLogs(copied); err != nil {
			return errors.Join(l.corrupt(0, "cannot be opened", err), remove())
		}
	}
	newest, end := "", int64(0)
	if l.options.rehearsal {
		if newest, end, err = valueLogEnd(copied); err != nil {
			return errors.Join(openError(l.dir, err), remove())
		}
	}
	db, err := badger.Open(o)
	if err != nil {
		return errors.Join(openError(l.dir, err), remove())
	}
	l.cut = newest != "" && isShorter(newest, end)
	if left.version > db.MaxVersion() {
		err := l.corrupt(0, fmt.Sprintf("the manifest is cut off: it leaves out table %s, which holds what was written last", left.name), nil)
		return errors.Join(err, db.Close(), remove())
	}
	l.db, l.remove = db, remove
	return nil
}

// rehearse opens a copy of what is there for writing. Badger then
// cuts the newest value log after the last entry that has its checksum: after a
// torn write nothing is lost by that, but where a byte has flipped everything
// behind it would be. Damage like that must be found while it is one byte. So
// must a lost manifest: Badger makes a new one, and deletes all tables.
func rehearse(dir string, o Options) error {
	o.ReadOnly, o.rehearsal = true, true
	l, err := Open(dir, o)
	if errors.Is(err, ErrNoLog) {
		tables, err := filepath.Glob(filepath.Join(dir, "*"+tableSuffix))
		if len(tables) > 0 {
			return &CorruptError{Dir: dir, Reason: fmt.Sprintf("holds tables, %s among them, but nothing that says what they are", filepath.Base(tables[0]))}
		}
		return err
	}
	if err != nil {
		return err
	}
	return l.Close()
}

// storeLogger passes on what Badger has to say; its news is our detail.
type storeLogger struct{ logger *slog.Logger }

func (s storeLogger) log(level slog.Level, format string, args []any) {
	if s.logger.Enabled(context.Background(), level) {
		s.logger.Log(context.Background(), level, "badger: "+strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
}

func (s storeLogger) Errorf(format string, args ...any)   { s.log(slog.LevelError, format, args) }
func (s storeLogger) Warningf(format string, args ...any) { s.log(slog.LevelWarn, format, args) }
func (s storeLogger) Infof(format string, args ...any)    { s.log(slog.LevelDebug, format, args) }
func (s storeLogger) Debugf(string, ...any)               {}

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
