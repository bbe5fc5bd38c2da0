package eventlog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"codea1/events"
	"codea1/replay/eventlog/internal/badgerdir"
	"codea1/replay/internal/replaytest"
)

// A reader sees a whole log with every event that was acknowledged before it opened, while
// a writer appends.
func TestReadWhileWritten(t *testing.T) {
	t.Parallel()
	run := t.TempDir()
	l := openLog(t, Dir(run), Options{})
	const groups = 60
	work, ctx := errgroup.WithContext(t.Context())
	acknowledged := make(chan uint64, groups)
	work.Go(func() error {
		defer close(acknowledged)
		for slot := range groups {
			// Large enough that values go to the value log.
			p := replaytest.Posed(slot, replaytest.Noise(slot, 2000))
			first, err := events.Encode(p)
			if err != nil {
				return err
			}
			second, err := events.Encode(replaytest.Sampled(p, replaytest.Noise(-slot, 20_000)))
			if err != nil {
				return err
			}
			appended, err := l.Append(ctx, at(2*slot, first, second))
			if err != nil {
				return err
			}
			acknowledged <- appended.Last
		}
		return nil
	})
	work.Go(func() error {
		for last := range acknowledged {
			if last%16 != 0 {
				continue
			}
			if err := readLive(ctx, Dir(run), last); err != nil {
				return err
			}
		}
		return nil
	})
	if err := work.Wait(); err != nil {
		t.Fatal(err)
	}
	mustVerify(t, l)
	if left, _ := filepath.Glob(filepath.Join(run, badgerdir.SnapshotPrefix+"*")); len(left) != 0 {
		t.Errorf("snapshots are left: %v", left)
	}
}

func readLive(ctx context.Context, dir string, least uint64) error {
	reader, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		return err
	}
	report, err := reader.Verify(ctx, nil)
	if err == nil && report.Events < least {
		err = fmt.Errorf("%d events, %d were acknowledged before", report.Events, least)
	}
	if closeErr := reader.Close(); err == nil {
		err = closeErr
	}
	return err
}

func TestAbandonedSnapshotsGo(t *testing.T) {
	run := t.TempDir()
	if err := openLog(t, Dir(run), Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	// Process IDs end below 2^22 on Linux.
	dead, live := filepath.Join(run, badgerdir.SnapshotPrefix+"99999999-1"), filepath.Join(run, fmt.Sprintf("%s%d-1", badgerdir.SnapshotPrefix, os.Getpid()))
	for _, dir := range []string{dead, live} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	openLog(t, Dir(run), Options{ReadOnly: true})
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("of a dead process: %v", err)
	}
	if _, err := os.Stat(live); err != nil {
		t.Errorf("of a live process: %v", err)
	}
}

// Badger truncates merged tables before it deletes them. A reader must not see that.
func TestReadersOutliveMerging(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 3 { // a table each
		l := openLog(t, dir, scratch)
		for slot := 50 * i; slot < 50*(i+1); slot++ {
			mustAppend(t, l, at(3*slot, replaytest.Group(t, slot)...))
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	stopped := openLog(t, dir, Options{ReadOnly: true})
	l := openLog(t, dir, Options{})
	live := openLog(t, dir, Options{ReadOnly: true})
	before, err := filepath.Glob(filepath.Join(dir, "*"+badgerdir.TableSuffix))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.mergeTables(); err != nil {
		t.Fatal(err)
	}
	for _, path := range before {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Fatalf("%s is still there: %v", path, err)
		}
	}
	for _, reader := range []*Log{stopped, live, l} {
		if report := mustVerify(t, reader); report.Events != 450 {
			t.Errorf("%d events", report.Events)
		}
	}
}
