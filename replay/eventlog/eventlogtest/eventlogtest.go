// Package eventlogtest opens and fills event logs for the tests of other
// packages.
package eventlogtest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"codea1/events"
	"codea1/replay/eventlog"
	"codea1/replay/eventlog/internal/badgerdir"
)

// Scratch are options for tests that open many logs: opening is fast, and
// nothing is synced.
var Scratch = eventlog.Options{Scratch: true}

// Open opens a log and closes it at the end of the test.
func Open(t testing.TB, dir string, options eventlog.Options) *eventlog.Log {
	t.Helper()
	l, err := eventlog.Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// Run returns the directory of a run with the events of messages in its log.
func Run(t testing.TB, messages []events.Message) (run string, l *eventlog.Log) {
	t.Helper()
	run = t.TempDir()
	l = Open(t, eventlog.Dir(run), Scratch)
	Append(t, l, Recorded(0, messages...))
	return run, l
}

// Recorded is At for the records of another log. The log does not check whether
// they follow from each other.
func Recorded(first int, messages ...events.Message) []eventlog.Incoming {
	entries := At(first, messages...)
	for i := range entries {
		entries[i] = (&eventlog.Record{Message: entries[i].Message}).Incoming(entries[i].Position)
	}
	return entries
}

// At gives each message the position "p" and its number, counted from first.
func At(first int, messages ...events.Message) []eventlog.Incoming {
	entries := make([]eventlog.Incoming, len(messages))
	for i, m := range messages {
		entries[i] = eventlog.Incoming{Message: m, Position: events.Position(fmt.Sprintf("p%d", first+i))}
	}
	return entries
}

// Append appends entries or fails the test.
func Append(t testing.TB, l *eventlog.Log, entries []eventlog.Incoming) eventlog.Appended {
	t.Helper()
	appended, err := l.Append(t.Context(), entries)
	if err != nil {
		t.Fatal(err)
	}
	return appended
}

// Verify verifies a log or fails the test.
func Verify(t testing.TB, l *eventlog.Log) eventlog.Report {
	t.Helper()
	report, err := l.Verify(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// Messages returns the selected messages of a log.
func Messages(t testing.TB, l *eventlog.Log, options eventlog.ReadOptions) []events.Message {
	t.Helper()
	var messages []events.Message
	for r, err := range l.Read(t.Context(), options) {
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, r.Message)
	}
	return messages
}

// SameStores closes two logs and compares all keys of their stores.
func SameStores(t testing.TB, x, y *eventlog.Log) {
	t.Helper()
	if err := errors.Join(x.Close(), y.Close()); err != nil {
		t.Fatal(err)
	}
	a, b := dump(t, x.Dir()), dump(t, y.Dir())
	for key, value := range a {
		if !bytes.Equal(b[key], value) {
			t.Errorf("key %q: %x, and %x in the other log", key, value, b[key])
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok {
			t.Errorf("key %q is only in the other log", key)
		}
	}
}

// dump returns the values in a closed log, with their user meta.
func dump(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	db := store(t, dir)
	all := make(map[string][]byte)
	err := db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			value, err := it.Item().ValueCopy(nil)
			if err != nil {
				return err
			}
			all[string(it.Item().Key())] = append(value, it.Item().UserMeta())
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return all
}

// Change replaces the value of a key of a closed log by the result of change; nil
// deletes the key.
func Change(t testing.TB, dir string, key []byte, change func(value []byte) []byte) {
	t.Helper()
	db := store(t, dir)
	err := db.Update(func(txn *badger.Txn) error {
		item, err := txn.Get(key)
		if err != nil {
			return err
		}
		value, err := item.ValueCopy(nil)
		if err != nil {
			return err
		}
		changed := change(value)
		if changed == nil {
			return txn.Delete(key)
		}
		return txn.SetEntry(badger.NewEntry(key, changed).WithMeta(item.UserMeta()))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

func store(t testing.TB, dir string) *badger.DB {
	t.Helper()
	db, err := badgerdir.OpenReleased(badger.DefaultOptions(dir).WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	return db
}
