package export

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"codea1/events"
	"codea1/replay/eventlog"
	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/internal/replaytest"
	"codea1/replay/mistakes"
)

// Both formats have the same rows.
func TestParquetEqualsJSONL(t *testing.T) {
	t.Parallel()
	_, l := eventlogtest.Run(t, replaytest.Tell(t))
	t.Run(TableAnswers, func(t *testing.T) { sameInBoth[AnswerRow](t, l, TableAnswers) })
	t.Run(TableTests, func(t *testing.T) { sameInBoth[TestRow](t, l, TableTests) })
	t.Run(TableGolden, func(t *testing.T) { sameInBoth[GoldenRow](t, l, TableGolden) })
}

func sameInBoth[T any](t *testing.T, l *eventlog.Log, table string) {
	lines, columns := exported(t, l, table, FormatJSONL), exported(t, l, table, FormatParquet)
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

func exported(t *testing.T, l *eventlog.Log, table, format string) []byte {
	t.Helper()
	var out bytes.Buffer
	x := Exporter{Log: l, Format: format, Out: &out}
	if err := x.Export(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestBookAsParquet(t *testing.T) {
	t.Parallel()
	_, l := eventlogtest.Run(t, replaytest.Tell(t))
	var out bytes.Buffer
	if err := Book(t.Context(), l.Book(), FormatParquet, &out); err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.Read[mistakes.Entry](bytes.NewReader(out.Bytes()), int64(out.Len()))
	if want := (mistakes.Entry{ProblemID: "p0", Call: "f(1)", Expected: "1", Count: 2, Order: 2}); err != nil || len(rows) != l.Book().Size() || rows[0] != want {
		t.Fatalf("%+v, %v; first should be %+v", rows, err, want)
	}
}

func TestEventsAsParquet(t *testing.T) {
	t.Parallel()
	messages := replaytest.Tell(t)
	_, l := eventlogtest.Run(t, messages)
	raw := exported(t, l, TableEvents, FormatParquet)
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

// The writer flushes large rows before it has many.
func TestParquetBoundsMemory(t *testing.T) {
	t.Parallel()
	const rows, bytesEach = 12, parquetGroupBytes / 4
	var out bytes.Buffer
	err := writeRows(FormatParquet, &out, func(write func(...EventRow) error) error {
		for i := range rows {
			if err := write(EventRow{Seq: uint64(i), Payload: rawJSON(replaytest.Noise(i, bytesEach))}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
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
				t.Errorf("row group %d stores %d bytes as the largest value of %v", i, n, c.MetaData.PathInSchema)
			}
		}
	}
	got, err := parquet.Read[EventRow](bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil || len(got) != rows || len(got[rows-1].Payload) != bytesEach {
		t.Errorf("%d rows, %v", len(got), err)
	}
}

// The set keeps the tests of a problem that most answers fail.
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
