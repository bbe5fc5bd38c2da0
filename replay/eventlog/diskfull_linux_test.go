package eventlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"codea1/replay/internal/replaytest"
)

const fillDirVariable = "CODEA1_TEST_FILL_DIR"

func init() { victims[fillDirVariable] = fillUp }

// fillUp fills the disk with the directory dir to the last byte. It reports the error
// of an append then, and whether the log closes.
func fillUp(dir string) error {
	l, err := Open(Dir(dir), Options{})
	if err != nil {
		return err
	}
	slot := 0
	appendGroups := func(n int) error {
		for range n {
			if _, err := l.Append(context.Background(), at(3*slot, replaytest.Group(new(testing.B), slot)...)); err != nil {
				return err
			}
			slot++
		}
		return nil
	}
	// The store has data in memory that closing must write.
	if err := appendGroups(3000); err != nil {
		return err
	}
	last, _ := l.Last()
	fmt.Println("acknowledged", last)
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		return err
	}
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := filler.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	if err := filler.Close(); err != nil {
		return err
	}
	var full *DiskFullError
	if err := appendGroups(1); !errors.As(err, &full) {
		return fmt.Errorf("append to a full disk: %w", err)
	}
	fmt.Println("refused with", full.FreeBytes, "bytes left")
	if err := l.Close(); err != nil {
		return fmt.Errorf("close on a full disk: %w", err)
	}
	fmt.Println("closed")
	return nil
}

// A log on a full disk refuses events, closes, and has every acknowledged event when
// there is space again.
func TestDiskFullToTheLastByte(t *testing.T) {
	dir := t.TempDir()
	if os.Getuid() != 0 {
		leaveOut(t, "mounting a small disk takes root")
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=640m"); err != nil {
		leaveOut(t, fmt.Sprintf("mount a small disk: %v", err))
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	filling := exec.CommandContext(ctx, self)
	filling.Env = append(os.Environ(), fillDirVariable+"="+dir)
	out, err := filling.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	var acknowledged uint64
	if _, err := fmt.Sscanf(string(out), "acknowledged %d", &acknowledged); err != nil || !strings.HasSuffix(string(out), "closed\n") {
		t.Fatalf("%s", out)
	}
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		t.Fatal(err)
	}
	l := openLog(t, Dir(dir), Options{})
	if report := mustVerify(t, l); report.Events != acknowledged {
		t.Fatalf("%d events, %d were acknowledged", report.Events, acknowledged)
	}
	mustAppend(t, l, at(9000, replaytest.Group(t, 3000)...))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// leaveOut skips a test because something is missing; in CI it fails the test.
func leaveOut(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}
