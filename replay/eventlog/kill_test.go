package eventlog

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"codea1/events"
	"codea1/replay/internal/replaytest"
)

const writerDirVariable = "CODEA1_TEST_WRITER_DIR"

// compactEvery is the number of batches between two compactions of the victim.
const compactEvery = 4

func init() { victims[writerDirVariable] = writeUntilKilled }

// writeUntilKilled is the victim. It reads its position from the log, as a recorder
// does, and appends the events after it, some of them twice, one batch ahead of the
// disk. It prints the last event of every acknowledged batch. Sometimes it compacts old
// events.
func writeUntilKilled(dir string) error {
	l, err := Open(dir, Options{chunkEvents: 64})
	if err != nil {
		return err
	}
	next := 0
	if p := l.Position(); p != events.Start {
		if _, err := fmt.Sscanf(string(p), "p%d", &next); err != nil {
			return err
		}
		next++
	}
	var before *Pending // and the end of its batch
	beforeEnd := 0
	var batch []Incoming
	for n := 1; ; n++ {
		if n%compactEvery == 0 {
			if _, err := l.Compact(context.Background(), uint64(max(0, next-100)), nil); err != nil {
				return err
			}
		}
		// Message number i is the i%3th of group i/3.
		for len(batch) < 3+next%40 {
			i := next + len(batch)
			batch = append(batch, at(i, replaytest.Group(new(testing.B), i/3)[i%3])...)
		}
		pending, err := l.Begin(context.Background(), batch)
		if err != nil {
			return err
		}
		next += len(batch)
		if before != nil {
			if _, err := before.Wait(); err != nil {
				return err
			}
			fmt.Println(beforeEnd)
		}
		before, beforeEnd = pending, next
		// The bus delivers the last message again.
		batch = []Incoming{batch[len(batch)-1]}
		next--
	}
}

// A writer is killed under load several times. It continues at the log's position: every
// acknowledged event is in the log, no event is there twice, and chain, index and book
// are correct.
//
// It does not run beside other tests: between fork and exec a new process
// shares the locks of this one, and a log closed then could not be opened.
func TestKill(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kills := killsWanted(t)
	// Written data outlives the process on any disk.
	dir := filepath.Join(scratchDir(t), "log")
	total, compacted := uint64(0), uint64(0)
	for kill := range kills {
		acknowledged := runVictim(t, self, dir, 3+kill%9)
		l, err := Open(dir, Options{ReadOnly: kill%3 != 0})
		if err != nil {
			t.Fatalf("after kill %d: %v", kill, err)
		}
		report, err := l.Verify(t.Context(), nil)
		if err != nil {
			t.Fatalf("after kill %d: %v", kill, err)
		}
		if report.Events < acknowledged {
			t.Fatalf("kill %d: %d events acknowledged, %d in the log", kill, acknowledged, report.Events)
		}
		if want := events.Position(fmt.Sprintf("p%d", report.Events-1)); l.Position() != want {
			t.Fatalf("kill %d: position %q with %d events", kill, l.Position(), report.Events)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		total, compacted = report.Events, report.Compacted
	}
	// Every message is there, in order.
	l := openLog(t, dir, Options{})
	n := 0
	for r, err := range l.Read(t.Context(), ReadOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if want := replaytest.Group(t, n/3)[n%3].ID; r.Message.ID != want {
			t.Fatalf("event %d is %s, want %s", r.Seq, r.Message.ID, want)
		}
		n++
	}
	if uint64(n) != total {
		t.Fatalf("%d events, want %d", n, total)
	}
	if compacted == 0 {
		t.Fatal("no payload was compacted")
	}
	t.Logf("%d kills, %d events, 0 acknowledged events lost, 0 twice, chain intact; %d payloads compacted", kills, total, compacted)
}

// killsWanted returns the number of kills: CODEA1_KILLS, or 30 in a thorough test.
func killsWanted(t *testing.T) int {
	text := os.Getenv("CODEA1_KILLS")
	switch {
	case text == "" && thorough():
		return 30
	case text == "":
		return 4
	}
	kills, err := strconv.Atoi(text)
	if err != nil || kills < 1 {
		t.Fatalf("CODEA1_KILLS=%q: want a number of kills from 1", text)
	}
	return kills
}

// runVictim waits for a number of acknowledged batches, kills the writer, and returns the
// last acknowledged event.
func runVictim(t *testing.T, self, dir string, batches int) (acknowledged uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	victim := exec.CommandContext(ctx, self)
	victim.Env = append(os.Environ(), writerDirVariable+"="+dir)
	victim.Stderr = os.Stderr
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "failed") {
			t.Fatal(lines.Text())
		}
		if _, err := fmt.Sscan(lines.Text(), &acknowledged); err != nil {
			t.Fatal(err)
		}
		if batches--; batches == 0 {
			// The victim writes until it receives the signal.
			if err := victim.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := victim.Wait(); err == nil {
		t.Fatal("the writer ended by itself")
	}
	return acknowledged
}
