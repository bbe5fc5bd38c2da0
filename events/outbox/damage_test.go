package outbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codea1/events"
	"codea1/events/outbox"
)

// victims are eight messages in an outbox of two segments, four in each.
type victims struct {
	messages []events.Message
	files    [2][]byte
}

func newVictims(t *testing.T) *victims {
	t.Helper()
	v := &victims{messages: messages(8)}
	for i := range v.files {
		dir := t.TempDir()
		o := open(t, dir, outbox.Options{})
		if err := errors.Join(o.Put(v.messages[4*i:4*i+4]), o.Close()); err != nil {
			t.Fatal(err)
		}
		var err error
		if v.files[i], err = os.ReadFile(segments(t, dir)[0]); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// harmed opens the outbox after harm has changed one of its files. It returns
// how many messages are whole, and the log. The outbox must open, return only
// messages that were put, and take all messages again.
func (v *victims) harmed(t *testing.T, file int, harm func(content []byte) []byte) (whole int, log string) {
	t.Helper()
	dir := t.TempDir()
	for i, content := range v.files {
		if i == file {
			content = harm(bytes.Clone(content))
		}
		if err := os.WriteFile(filepath.Join(dir, segmentName(i)), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var heard bytes.Buffer
	o := open(t, dir, outbox.Options{Logger: slog.New(slog.NewTextHandler(&heard, nil))})
	for i := range v.messages {
		if has(t, o, &v.messages[i]) {
			whole++
		}
	}
	// Lost messages are made again and stored.
	if err := errors.Join(o.Put(v.messages), o.Close()); err != nil {
		t.Fatal(err)
	}
	o = open(t, dir, outbox.Options{})
	for i := range v.messages {
		if !has(t, o, &v.messages[i]) {
			t.Errorf("message %d is not kept after the damage", i)
		}
	}
	return whole, heard.String()
}

func segmentName(i int) string { return fmt.Sprintf("%08d.outbox", i+1) }

// A file that is cut anywhere loses only the messages behind the cut.
func TestOutboxThatWasCut(t *testing.T) {
	v := newVictims(t)
	for file, content := range v.files {
		size := len(content)
		for at := 0; at < size; at += 1 + size/23 {
			whole, log := v.harmed(t, file, func(content []byte) []byte { return content[:at] })
			if want := 4 + 4*at/size; whole < want-1 || whole > want {
				t.Errorf("file %d cut at %d of %d: %d of 8 messages are whole, want %d", file, at, size, whole, want)
			}
			if at > 0 && !strings.Contains(log, segmentName(file)) {
				t.Errorf("file %d cut at %d of %d: the log does not name it: %s", file, at, size, log)
			}
		}
	}
}

// Changed bytes lose at most the messages behind them in their file, and are
// never read as a message.
func TestOutboxWithOtherBytes(t *testing.T) {
	v := newVictims(t)
	for file, content := range v.files {
		size := len(content)
		for at := 0; at < size; at += 1 + size/23 {
			for _, n := range []int{1, 4096} {
				whole, log := v.harmed(t, file, func(content []byte) []byte {
					hole := content[at:min(at+n, size)]
					for i := range hole {
						hole[i] ^= 0x55
					}
					return content
				})
				if before := 4 * at / size; whole < 4+before-1 || whole > 7 {
					t.Errorf("file %d, %d bytes at %d of %d: %d of 8 messages are whole", file, n, at, size, whole)
				}
				if !strings.Contains(log, segmentName(file)) {
					t.Errorf("file %d, %d bytes at %d of %d: the log does not name it: %s", file, n, at, size, log)
				}
			}
		}
	}
}

// A file that was extended but not written ends in zeros.
func TestOutboxThatEndsInZeros(t *testing.T) {
	v := newVictims(t)
	for file := range v.files {
		whole, log := v.harmed(t, file, func(content []byte) []byte { return append(content, make([]byte, 10000)...) })
		if whole != 8 || !strings.Contains(log, segmentName(file)) {
			t.Errorf("%d of 8 messages are whole: %s", whole, log)
		}
	}
}
