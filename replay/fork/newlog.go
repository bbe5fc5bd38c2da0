package fork

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/replay/eventlog"
)

// NewLog describes a log that Copy, Rebuild or RebuildFromBus made.
type NewLog struct {
	Events uint64
	Chain  eventlog.Hash // chain hash of the last event
	Tests  int           // tests in the Mistake Book
	// Quarantine counts the messages that are no events of the run.
	Quarantine eventlog.Quarantine
	Attempts   int    // run.started events
	Config     string // configuration in the last run.started event
	// Newest holds the newest policy version of each role in the log. Its
	// checkpoint may be gone.
	Newest map[events.Role]*events.PolicyUpdated

	started *events.RunStarted // the last one
}

// note reads an event of the new log.
func (l *NewLog) note(m *events.Message, decode func() (*events.Event, error)) error {
	if m.Type != events.TypeRunStarted && m.Type != events.TypePolicyUpdated {
		return nil
	}
	e, err := decode()
	if eventlog.IsUnreadable(err) {
		return nil // logs of earlier builds may have such an event
	}
	if err != nil {
		return err
	}
	switch p := e.Payload.(type) {
	case *events.RunStarted:
		l.started, l.Config = p, p.Config
		l.Attempts++
	case *events.PolicyUpdated:
		if l.Newest == nil {
			l.Newest = make(map[events.Role]*events.PolicyUpdated)
		}
		l.Newest[p.Role] = p
	}
	return nil
}

// copy appends the events of source up to a sequence number to target. entry
// makes the new entry of an event.
func (l *NewLog) copy(ctx context.Context, source, target *eventlog.Log, to uint64, entry func(*eventlog.Record) eventlog.Incoming, progress func(done uint64)) error {
	batch := batches[eventlog.Incoming]{send: func(ctx context.Context, entries []eventlog.Incoming) error {
		_, err := target.Append(ctx, entries)
		return err
	}}
	for r, err := range source.Read(ctx, eventlog.ReadOptions{To: to}) {
		if err != nil {
			return err
		}
		if err := l.note(&r.Message, r.Decode); err != nil {
			return err
		}
		if err := batch.add(ctx, entry(&r), len(r.Message.Data)); err != nil {
			return err
		}
		if progress != nil {
			progress(r.Seq)
		}
	}
	return batch.flush(ctx)
}

// makeLog makes a log in dir, which must be empty or absent. If fill fails, dir
// stays empty.
func (l *NewLog) makeLog(dir string, options eventlog.Options, fill func(target *eventlog.Log) error) error {
	return intoEmpty(dir, func(partial string) error {
		target, err := eventlog.Open(partial, options)
		if err != nil {
			return err
		}
		err = fill(target)
		l.Events, l.Chain = target.Last()
		l.Tests, l.Quarantine = target.Book().Size(), target.Quarantine()
		return errors.Join(err, target.Close())
	})
}

// ErrNotEmpty is returned for the directory of a new run if it holds files.
var ErrNotEmpty = errors.New("directory exists and is not empty: choose another name, or remove it")

// intoEmpty calls fill with a directory beside dir, and renames it to dir when
// it is complete. dir must be empty or absent; after a failure it is so still.
func intoEmpty(dir string, fill func(partial string) error) error {
	partial := dir + ".partial"
	if err := EmptyDir(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	err := os.Mkdir(partial, rundir.DirMode)
	if err == nil {
		err = fill(partial)
	}
	if err == nil {
		err = errors.Join(rundir.SyncDir(partial), os.Rename(partial, dir))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	return rundir.SyncDir(filepath.Dir(dir))
}

// EmptyDir removes an empty directory, and returns ErrNotEmpty for one with
// files. It creates the parent of an absent directory, which may be a run directory.
func EmptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return os.MkdirAll(filepath.Dir(filepath.Clean(dir)), rundir.DirMode)
	}
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s: %w", dir, ErrNotEmpty)
	}
	return os.Remove(dir)
}
