package replay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"codea1/events"
	"github.com/dgraph-io/badger/v4"
)

// Rebuilt says what a rebuild made.
type Rebuilt struct {
	Events  uint64 // in the log
	Chain   Hash   // of the last
	Refused uint64 // events left out, whose descendants stay left out
	Tests   int    // in the Mistake Book
	Config  string // the run's configuration, as its last start recorded it
	// Newest is the newest policy version of each role: what training goes on
	// from. It is the log's word; the files may be gone.
	Newest map[events.Role]*events.PolicyUpdated
}

const (
	// rebuildBatch and rebuildBytes bound what is held of the source.
	rebuildBatch = 256
	rebuildBytes = 4 << 20
)

// ErrNotEmpty is returned for a directory that a run is to be made in and that
// holds something.
var ErrNotEmpty = errors.New("directory exists and is not empty")

// Rebuild makes a log in dir out of nothing but the events of a log: index,
// Mistake Book and head are made anew, whatever state they are in at the
// source. The chain hashes come out the same, or the source is damaged and a
// *CorruptError says where. dir must be empty or absent; a rebuild that fails
// leaves it so.
func Rebuild(ctx context.Context, source *Log, dir string, options Options, progress func(done uint64)) (Rebuilt, error) {
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
	if err := emptyDir(dir); err != nil {
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

// emptyDir removes an empty directory and refuses one that holds something.
func emptyDir(dir string) error {
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

func rebuild(ctx context.Context, source *Log, dir string, options Options, progress func(done uint64)) (Rebuilt, error) {
	target, err := Open(dir, options)
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

func (report *Rebuilt) copy(ctx context.Context, source, target *Log, progress func(done uint64)) error {
	last, chain := source.Last()
	var batch []Entry
	size := 0
	flush := func() error {
		if _, err := target.Append(ctx, batch); err != nil {
			return err
		}
		batch, size = batch[:0], 0
		return nil
	}
	for r, err := range source.Scan(ctx, ScanOptions{To: last}) {
		if err != nil {
			return err
		}
		if err := report.note(&r); err != nil {
			return err
		}
		// The position belongs to the end; until then a reader would start over.
		position := events.Start
		if r.Seq == last {
			position = source.Position()
		}
		batch = append(batch, r.Entry(position))
		size += len(r.Message.Data)
		if len(batch) == rebuildBatch || size >= rebuildBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		if progress != nil {
			progress(r.Seq)
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if report.Events, report.Chain = target.Last(); report.Events != last || report.Chain != chain {
		return source.corrupt(report.Events, "its events do not add up to the chain it ends with", nil)
	}
	var err error
	report.Refused, err = copyRefusals(ctx, source, target)
	return err
}

// note keeps what a run needs besides its log.
func (report *Rebuilt) note(r *Record) error {
	if r.Message.Type != events.TypeRunStarted && r.Message.Type != events.TypePolicyUpdated {
		return nil
	}
	e, err := r.Decode()
	if err != nil {
		return err
	}
	report.keep(e)
	return nil
}

func (report *Rebuilt) keep(e *events.Event) {
	switch p := e.Payload.(type) {
	case *events.RunStarted:
		report.Config = p.Config
	case *events.PolicyUpdated:
		report.Newest[p.Role] = p
	}
}

// copyRefusals copies what the events alone do not tell: which events were left
// out, so that what follows from them stays out too.
func copyRefusals(ctx context.Context, source, target *Log) (n uint64, err error) {
	txn := source.db.NewTransaction(false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceRefused}})
	defer it.Close()
	batch := target.db.NewWriteBatch()
	defer batch.Cancel()
	for it.Rewind(); it.Valid(); it.Next() {
		if n%64 == 0 && ctx.Err() != nil {
			return n, ctx.Err()
		}
		value, err := it.Item().ValueCopy(nil)
		if err != nil {
			return n, source.corrupt(0, "refusal cannot be read", err)
		}
		if err := batch.Set(it.Item().KeyCopy(nil), value); err != nil {
			return n, err
		}
		n++
	}
	return n, batch.Flush()
}
