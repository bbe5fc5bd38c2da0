package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"codea1/replay/eventlog/internal/badgerdir"
)

const (
	// garbageRatio is the share of garbage from which a file of the value log is
	// rewritten.
	garbageRatio = 0.2
	// spaceNothing holds one key while freeSpace runs.
	spaceNothing = 'z'
)

// freeSpace frees the disk space of replaced records. It returns true, and does
// nothing, while a snapshot shares files with the log: Badger truncates a file
// before it deletes it, and a hard link shows that.
//
// Badger knows the garbage of a value log only after it has merged the tables
// with the keys. DropPrefix makes it write its memory to tables and merge them.
func (l *Log) freeSpace(ctx context.Context) (waiting bool, err error) {
	unlock, alone, err := badgerdir.LockFiles(l.dir, true)
	if err != nil {
		return false, fmt.Errorf("log %s: %w", l.dir, err)
	}
	if !alone {
		return true, nil
	}
	defer unlock()
	if err := l.mergeTables(); err != nil {
		return false, fmt.Errorf("free disk space of log %s: %w", l.dir, err)
	}
	for err == nil {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		l.collecting.Lock()
		err = l.db.RunValueLogGC(garbageRatio)
		l.collecting.Unlock()
	}
	if errors.Is(err, badger.ErrNoRewrite) {
		err = l.spaceFreed()
	}
	if err != nil {
		return false, fmt.Errorf("free disk space of log %s: %w", l.dir, err)
	}
	return false, nil
}

func (l *Log) mergeTables() error {
	if err := l.writeTables(); err != nil {
		return err
	}
	return l.db.Flatten(1) // events can be appended meanwhile
}

// writeTables writes Badger's memory to tables. Badger refuses writes meanwhile.
func (l *Log) writeTables() error {
	l.committing.Lock()
	defer l.committing.Unlock()
	err := l.db.Update(func(txn *badger.Txn) error { return txn.Set([]byte{spaceNothing}, nil) })
	if err != nil {
		return err
	}
	return l.db.DropPrefix([]byte{spaceNothing})
}

// spaceFreed stores that the files hold no garbage, and writes the last event of
// the value log again: Badger has moved other values behind it, and opening a
// log requires it to be the last.
func (l *Log) spaceFreed() error {
	l.committing.Lock()
	defer l.committing.Unlock()
	after := l.compactedTo()
	after.garbage = 0
	err := l.db.Update(func(txn *badger.Txn) error {
		if err := txn.Set(keyTokens, after.encode()); err != nil {
			return err
		}
		large, err := view{l, txn}.get(keyLarge)
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
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.compacted = after
	return nil
}
