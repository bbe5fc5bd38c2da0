package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codea1/events"
	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

// The two formats hold the same rows.
func TestParquetEqualsJSONL(t *testing.T) {
	t.Parallel()
	_, l := storyLog(t, tell(t))
	t.Run(tableAnswers, func(t *testing.T) { sameInBoth[AnswerRow](t, l, tableAnswers) })
	t.Run(tableTests, func(t *testing.T) { sameInBoth[TestRow](t, l, tableTests) })
	t.Run(tableGolden, func(t *testing.T) { sameInBoth[GoldenRow](t, l, tableGolden) })
}

func sameInBoth[T any](t *testing.T, l *Log, table string) {
	lines, columns := exported(t, l, table, formatJSONL), exported(t, l, table, formatParquet)
	var want []T
	for decoder := json.NewDecoder(bytes.NewReader(lines)); decoder.More(); {
		var row T
		if err := decoder.Decode(&row); err != nil {
			t.Fatal(err)
		}
		want = append(want, row)
	}
	got, err := parquet.Read[T](bytes.NewReader(columns), int64(len(columns)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
		t.Errorf("%d rows (-jsonl +parquet):\n%s", len(got), diff)
	}
}

func exported(t *testing.T, l *Log, table, format string) []byte {
	t.Helper()
	var out bytes.Buffer
	x := exporter{log: l, format: format, out: &out}
	if err := x.export(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestBookAsParquet(t *testing.T) {
	t.Parallel()
	_, l := storyLog(t, tell(t))
	var out bytes.Buffer
	if err := exportBook(t.Context(), l.Book(), formatParquet, &out); err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.Read[listedTest](bytes.NewReader(out.Bytes()), int64(out.Len()))
	if want := (listedTest{"p0", "f(1)", "1", 2, 2}); err != nil || len(rows) != l.Book().Size() || rows[0] != want {
		t.Fatalf("%+v, %v; first should be %+v", rows, err, want)
	}
}

func TestEventsAsParquet(t *testing.T) {
	t.Parallel()
	messages := tell(t)
	_, l := storyLog(t, messages)
	raw := exported(t, l, tableEvents, formatParquet)
	rows, err := parquet.Read[EventRow](bytes.NewReader(raw), int64(len(raw)))
	if err != nil || len(rows) != len(messages) {
		t.Fatalf("%d rows of %d events, %v", len(rows), len(messages), err)
	}
	for i, row := range rows {
		if row.ID != messages[i].ID || row.Seq != uint64(i+1) || !json.Valid([]byte(row.Payload)) {
			t.Errorf("row %d: %+v", i, row)
		}
	}
}

// Large rows are not held until there are many.
func TestParquetHoldsNoMoreThanItSays(t *testing.T) {
	t.Parallel()
	const rows, bytesEach = 12, parquetGroupBytes / 4
	var out bytes.Buffer
	w := newRowWriter[EventRow](formatParquet, &out)
	for i := range rows {
		if err := w.write(EventRow{Seq: uint64(i), Payload: rawJSON(noise(i, bytesEach))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range file.RowGroups() {
		if n := g.NumRows(); n != 4 {
			t.Errorf("row group %d has %d rows", i, n)
		}
	}
	for i, g := range file.Metadata().RowGroups {
		for _, c := range g.Columns {
			if n := len(c.MetaData.Statistics.MaxValue); n > 64 {
				t.Errorf("row group %d keeps %d bytes as the greatest of %v", i, n, c.MetaData.PathInSchema)
			}
		}
	}
	got, err := parquet.Read[EventRow](bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil || len(got) != rows || len(got[rows-1].Payload) != bytesEach {
		t.Errorf("%d rows, %v", len(got), err)
	}
}

// An export that is cut short leaves no file behind.
func TestExportedFileIsWholeOrAbsent(t *testing.T) {
	t.Parallel()
	run, l := storyLog(t, tell(t))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "out.jsonl")
	if _, err := execute(t, "replay", "export", run, "--out", path); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(path); err != nil || bytes.Count(raw, []byte("\n")) != 31 {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	again := path + ".again"
	err := writeFile(again, func(io.Writer) error { return canceled.Err() })
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(again + "*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// What stands where the file should go stays as it is, and the error names it.
func TestExportToWhatIsNoFile(t *testing.T) {
	t.Parallel()
	run, l := storyLog(t, tell(t))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, tt := range []struct {
		path string
		want error
	}{{folder, syscall.EISDIR}, {filepath.Join(folder, "none", "x"), os.ErrNotExist}} {
		_, err := execute(t, "replay", "export", run, "--out", tt.path)
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), "write "+tt.path+":") {
			t.Errorf("--out %s: %v", tt.path, err)
		}
	}
	if left, _ := filepath.Glob(folder + "*/*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if left, _ := filepath.Glob(folder + ".*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSelection(t *testing.T) {
	t.Parallel()
	messages := tell(t)
	for _, tt := range []struct {
		name string
		s    Selection
		want int
	}{
		{"all", Selection{}, 31},
		{"a step", Selection{FromStep: 2, ToStep: 2}, 12},
		{"from a step on", Selection{FromStep: 1}, 24},
		{"a group", Selection{Groups: []string{"s000001-q0001"}}, 5},
		{"types of a step", Selection{FromStep: 1, ToStep: 1, Types: []events.Type{events.TypePolicyUpdated, events.TypeEvalScored}}, 2},
		{"from a time on", Selection{Since: messages[10].Time}, 21},
		{"until a time", Selection{Until: messages[10].Time}, 10},
	} {
		n := 0
		for i := range messages {
			n += count(tt.s.selects(&messages[i]))
		}
		if n != tt.want {
			t.Errorf("%s: %d events, want %d", tt.name, n, tt.want)
		}
	}
}

// A problem with more tests than are kept keeps those that fail most.
func TestGoldenSetKeepsTheHardest(t *testing.T) {
	set := newGoldenSet()
	problem := events.Problem{ID: "p"}
	for i := range 5 * maxGoldenTests {
		verdict := events.VerdictPass
		if i%5 == 0 {
			verdict = events.VerdictFail
		}
		set.add(&problem, &events.CodeExecuted{Answers: []events.ExecutedAnswer{{Suites: []events.ExecutedSuite{{
			Tests: []events.ExecutedTest{{Status: events.StatusKept, Call: string(rune('a'+i%26)) + string(rune(i+1000)), Expected: "0", Verdict: verdict}},
		}}}}})
	}
	rows := set.rows("r1")
	if len(rows) != 1 || len(rows[0].Tests) != maxGoldenTests {
		t.Fatalf("%d problems", len(rows))
	}
	hardest := 0
	for _, c := range set.problems["p"].tests {
		hardest += c.failed
	}
	if hardest < maxGoldenTests {
		t.Errorf("%d tests that fail are kept of %d", hardest, maxGoldenTests)
	}
}
