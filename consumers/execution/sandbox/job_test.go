package sandbox

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/literal"
)

// FuzzFrame reads frames from bytes that a candidate may have written.
func FuzzFrame(f *testing.F) {
	const most = 64
	for _, seed := range []string{"", "V", "V\x02\x00\x00\x0042", "B\x00\x00\x00\x00L\x00\x00\x00\x00", "V\xff\xff\xff\xff", "\x00\x00\x00\x00\x00", "R\x41\x00\x00\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := conversation{in: bufio.NewReader(bytes.NewReader(data)), most: most}
		for read := 0; ; {
			r, err := c.frame()
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, errForged) {
					t.Fatalf("an error of no known kind: %v", err)
				}
				return
			}
			read += frameHeader + len(r.Text)
			if r.Tag == TagMissing || r.Tag == TagOvertime || len(r.Text) > most || read > len(data) {
				t.Fatalf("frame %q from %q", r, data)
			}
		}
	})
}

// TestManyJobs mixes jobs that end well and badly: every one gets its own
// answer, and nothing is left behind.
func TestManyJobs(t *testing.T) {
	p := openPool(t, Config{Workers: 2, CallTimeout: quick.CallTimeout, MemoryBytes: quick.MemoryBytes})
	// The first jobs open the descriptors that stay open.
	runOne(t, p, "", "1")
	before := openDescriptors(t)
	const code = `
import os
def f(x):
    if x % 5 == 1: os._exit(1)
    if x % 5 == 2: raise ValueError
    if x % 5 == 3: return bytearray(1 << 40)
    if x % 5 == 4 and os.fork() == 0:
        while True: pass
    return x
`
	var jobs errgroup.Group
	jobs.SetLimit(4)
	for i := range sandboxtest.IfThorough[int64](150, 60) {
		jobs.Go(func() error {
			call := "f(" + literal.Text(literal.NewInt(i)) + ")"
			report, err := p.Run(t.Context(), Program{Code: code, EntryPoint: "f"}, []string{call, "6"})
			if err != nil {
				return err
			}
			want := []Kind{Returned, Crashed, Raised, Raised, Returned}[i%5]
			got := report.Outcomes[0]
			if got.Kind != want || want == Returned && !literal.Equal(got.Value, literal.NewInt(i)) || report.Outcomes[1].Kind != Returned {
				t.Errorf("%s: %+v", call, report)
			}
			return nil
		})
	}
	if err := jobs.Wait(); err != nil {
		t.Fatal(err)
	}
	if after := openDescriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("descriptors cannot be counted: %v", err)
	}
	return len(entries)
}

// TestEnough: a job ends at the reply that its caller wants to be the last one, also in
// the child after one that died.
func TestEnough(t *testing.T) {
	p := openPool(t, quick)
	const code = "import os\ndef f(x):\n    if x == 1: os._exit(1)\n    while x == 4: pass\n    return x"
	for wanted := 1; wanted <= 4; wanted++ {
		s, err := p.Do(t.Context(), Job{
			Kind: JobCalls, Code: code, Entry: "f", Items: []string{"f(0)", "f(1)", "f(2)", "f(3)", "f(4)"},
			Enough: func(replies []Reply) bool { return len(replies) == wanted },
		})
		if err != nil || len(s.Replies) != wanted || wanted != 2 && s.Replies[wanted-1].Text != strconv.Itoa(wanted-1) {
			t.Errorf("%d wanted: %v, %v", wanted, s.Replies, err)
		}
	}
}
