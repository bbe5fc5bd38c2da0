package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"codea1/replay/eventlog/internal/badgerdir"
)

const (
	// collectRatio is the share of a value log's file that must be garbage for
	// the file to be written anew without it.
	collectRatio = 0.2
	// spaceNothing holds a key only for as long as collect runs.
	spaceNothing = 'z'
)

// collect gives back the space of what Compact has replaced. It reports true,
// and leaves it for another time, while a snapshot shares files with the log:
// Badger empties a file before it deletes it, under whatever name it is open.
//
// Badger knows what of a value log is garbage once it has merged the tables
// that pointed at it. Dropping a prefix is how it is asked to write out what is
// in memory and to merge it down.
func (l *Log) collect(ctx context.Context) (waiting bool, err error) {
	unlock, alone, err := badgerdir.LockFiles(l.dir, true)
	if err != nil {
		return false, fmt.Errorf("log %s: %w", l.dir, err)
	}
	if !alone {
		return true, nil
	}
	defer unlock()
	if err := l.mergeTables(); err != nil {
		return false, fmt.Errorf("collect garbage of log %s: %w", l.dir, err)
	}
	for err == nil {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		l.collecting.Lock()
		err = l.db.RunValueLogGC(collectRatio)
		l.collecting.Unlock()
	}
	if !errors.Is(err, badger.ErrNoRewrite) {
		return false, fmt.Errorf("collect garbage of log %s: %w", l.dir, err)
	}
	return false, l.collected()
}

func (l *Log) mergeTables() error {
	if err := l.writeOut(); err != nil {
		return err
	}
	return l.db.Flatten(1) // appending goes on
}

// writeOut writes what is in memory into tables. Badger refuses writes meanwhile.
func (l *Log) writeOut() error {
	l.committing.Lock()
	defer l.committing.Unlock()
	err := l.db.Update(func(txn *badger.Txn) error { return txn.Set([]byte{spaceNothing}, nil) })
	if err != nil {
		return err
	}
	return l.db.DropPrefix([]byte{spaceNothing})
}

// collected notes that no garbage is held, and writes the event that was the
// last in the value log once more: it has to be the last still when the log is
// opened, and values that were moved stand behind it now.
func (l *Log) collected() error {
	l.committing.Lock()
	defer l.committing.Unlock()
	after := l.compacted()
	after.held = 0
	err := l.db.Update(func(txn *badger.Txn) error {
		if err := txn.Set(keyTokens, after.encode()); err != nil {
			return err
		}
		large, err := get(txn, keyLarge)
		if err != nil || large == nil {
			return err
		}
		item, err := txn.Get(append([]byte{spaceEvents}, large...))
		if err != nil {
			return err
		}
		value, err := item.ValueCopy(nil)
		if err != nil {
			return err
		}
		return txn.SetEntry(badger.NewEntry(item.KeyCopy(nil), value).WithMeta(item.UserMeta()))
	})
	if err != nil {
		return fmt.Errorf("collect garbage of log %s: %w", l.dir, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bare = after
	return nil
}
