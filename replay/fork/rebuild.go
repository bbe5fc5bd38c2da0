package fork

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"codea1/events"
	"codea1/replay/eventlog"
)

// Rebuilt says what a rebuild made.
type Rebuilt struct {
	Events  uint64        // in the log
	Chain   eventlog.Hash // of the last
	Refused uint64        // events left out, whose descendants stay left out
	Tests   int           // in the Mistake eventlog.Book
	Config  string        // the run's configuration, as its last start recorded it
	// Newest is the newest policy version of each role: what training goes on
	// from. It is the log's word; the files may be gone.
	Newest map[events.Role]*events.PolicyUpdated
}

// ErrNotEmpty is returned for a directory that a run is to be made in and that
// holds something.
var ErrNotEmpty = errors.New("directory exists and is not empty")

// Rebuild makes a log in dir out of nothing but the events of a log: index,
// Mistake Book and head are made anew, whatever state they are in at the
// source. The chain hashes come out the same, or the source is damaged and a
// *CorruptError says where. dir must be empty or absent; a rebuild that fails
// leaves it so.
func Rebuild(ctx context.Context, source *eventlog.Log, dir string, options eventlog.Options, progress func(done uint64)) (Rebuilt, error) {
	var report Rebuilt
	err := intoEmpty(dir, func(partial string) (err error) {
		report, err = rebuild(ctx, source, partial, options, progress)
		return err
	})
	return report, err
}

// intoEmpty has a directory made beside dir, and gives it that name once it is
// whole. dir must be empty or absent; a failure leaves it so.
func intoEmpty(dir string, make func(partial string) error) error {
	partial := dir + ".partial"
	if err := EmptyDir(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	err := make(partial)
	if err == nil {
		err = os.Rename(partial, dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	return nil
}

// EmptyDir removes an empty directory and refuses one that holds something.
func EmptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return os.MkdirAll(filepath.Dir(filepath.Clean(dir)), 0o755)
	}
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s: %w", dir, ErrNotEmpty)
	}
	return os.Remove(dir)
}

func rebuild(ctx context.Context, source *eventlog.Log, dir string, options eventlog.Options, progress func(done uint64)) (Rebuilt, error) {
	target, err := eventlog.Open(dir, options)
	if err != nil {
		return Rebuilt{}, err
	}
	report := Rebuilt{Newest: make(map[events.Role]*events.PolicyUpdated)}
	if err := report.copy(ctx, source, target, progress); err != nil {
		return report, errors.Join(err, target.Close())
	}
	report.Tests = target.Book().Size()
	return report, target.Close()
}

func (report *Rebuilt) copy(ctx context.Context, source, target *eventlog.Log, progress func(done uint64)) error {
	last, chain := source.Last()
	batch := batches{log: target}
	for r, err := range source.Read(ctx, eventlog.ReadOptions{To: last}) {
		if err != nil {
			return err
		}
		if err := report.note(&r.Message, r.Decode); err != nil {
			return err
		}
		// The position belongs to the end; until then a reader would start over.
		position := events.Start
		if r.Seq == last {
			position = source.Position()
		}
		if err := batch.add(ctx, r.Incoming(position)); err != nil {
			return err
		}
		if progress != nil {
			progress(r.Seq)
		}
	}
	if err := batch.flush(ctx); err != nil {
		return err
	}
	if report.Events, report.Chain = target.Last(); report.Events != last || report.Chain != chain {
		return &eventlog.CorruptError{Dir: source.Dir(), Seq: report.Events, Reason: "its events do not give the chain hash of its end"}
	}
	var err error
	report.Refused, err = eventlog.CopyRefusals(ctx, source, target)
	return err
}

// note keeps the configuration and the newest policy versions.
func (report *Rebuilt) note(m *events.Message, decode func() (*events.Event, error)) error {
	if m.Type != events.TypeRunStarted && m.Type != events.TypePolicyUpdated {
		return nil
	}
	e, err := decode()
	if err != nil {
		return err
	}
	switch p := e.Payload.(type) {
	case *events.RunStarted:
		report.Config = p.Config
	case *events.PolicyUpdated:
		report.Newest[p.Role] = p
	}
	return nil
}
