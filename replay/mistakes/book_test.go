package mistakes

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"codea1/events"
)

// model is a simple and slow Mistake Book.
type model struct{ tests []modelTest }

type modelTest struct {
	problem, call, expected string
	count                   int
}

func (m *model) apply(r *events.GroupRewarded) {
	if r.Plan.Purpose != events.PurposeTrain {
		return
	}
	for _, d := range r.Deltas {
		i := slices.IndexFunc(m.tests, func(t modelTest) bool {
			return t.problem == r.ProblemID && t.call == d.Call && t.expected == d.Expected
		})
		switch {
		case i >= 0:
			m.tests[i].count += d.Change
			if m.tests[i].count <= 0 {
				m.tests = slices.Delete(m.tests, i, i+1)
			}
		case d.Change > 0:
			m.tests = append(m.tests, modelTest{r.ProblemID, d.Call, d.Expected, d.Change})
		}
	}
}

func (m *model) top(problem string, k int) []events.HistoricalTest {
	top := []events.HistoricalTest{}
	for _, t := range m.tests {
		if t.problem == problem {
			top = append(top, events.HistoricalTest{Call: t.call, Expected: t.expected, Count: t.count})
		}
	}
	sort.SliceStable(top, func(i, j int) bool { return top[i].Count > top[j].Count })
	return top[:min(k, len(top))]
}

var problemIDs = []string{"a", "b", "c"}

func drawRewarded(t *rapid.T) *events.GroupRewarded {
	r := &events.GroupRewarded{
		Plan:      events.Plan{Purpose: rapid.SampledFrom([]events.Purpose{events.PurposeTrain, events.PurposeTrain, events.PurposeEval}).Draw(t, "purpose")},
		ProblemID: rapid.SampledFrom(problemIDs).Draw(t, "problem"),
	}
	delta := rapid.Custom(func(t *rapid.T) events.BookDelta {
		return events.BookDelta{
			Call:     fmt.Sprintf("f(%d)", rapid.IntRange(0, 4).Draw(t, "call")),
			Expected: strconv.Itoa(rapid.IntRange(0, 1).Draw(t, "expected")),
			Change:   rapid.IntRange(1, 3).Draw(t, "change"),
		}
	})
	for _, d := range rapid.SliceOfN(delta, 0, 4).Draw(t, "decrements") {
		d.Change = -d.Change
		r.Deltas = append(r.Deltas, d)
	}
	r.Deltas = append(r.Deltas, rapid.SliceOfN(delta, 0, 4).Draw(t, "increments")...)
	return r
}

// throughStorage returns a book of the decoded entries of another.
func throughStorage(t *rapid.T, book *Book) *Book {
	again := New()
	for e := range book.All() {
		e, rest, err := DecodeEntry(e.Append(nil))
		if err != nil || len(rest) > 0 {
			t.Fatalf("%+v, %d bytes left, %v", e, len(rest), err)
		}
		if err := again.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(book.Encode(), again.Encode()) {
		t.Fatal("the stored book differs")
	}
	return again
}

func TestBookEqualsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, naive := New(), &model{}
		for _, r := range rapid.SliceOfN(rapid.Custom(drawRewarded), 0, 30).Draw(t, "groups") {
			book.Apply(r)
			naive.apply(r)
			if rapid.Bool().Draw(t, "through storage") {
				book = throughStorage(t, book)
			}
		}
		for _, id := range problemIDs {
			for k := range 6 {
				if diff := cmp.Diff(naive.top(id, k), book.Top(id, k)); diff != "" {
					t.Fatalf("top %d of %s (-model +book):\n%s", k, id, diff)
				}
			}
		}
		if book.Size() != len(naive.tests) {
			t.Fatalf("size %d, model has %d", book.Size(), len(naive.tests))
		}
	})
}

// Groups of different problems commute: the book does not depend on the order in
// which they are rewarded.
func TestProblemsAreIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := rapid.SliceOfN(rapid.Custom(drawRewarded), 0, 20).Draw(t, "groups")
		book, sorted := New(), New()
		for _, r := range groups {
			book.Apply(r)
		}
		slices.SortStableFunc(groups, func(x, y *events.GroupRewarded) int { return strings.Compare(y.ProblemID, x.ProblemID) })
		for _, r := range groups {
			sorted.Apply(r)
		}
		if !bytes.Equal(book.Encode(), sorted.Encode()) || book.Digest() != sorted.Digest() {
			t.Fatal("the order of groups of different problems shows in the book")
		}
	})
}

func TestRevertUndoesApply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book := New()
		for _, r := range rapid.SliceOfN(rapid.Custom(drawRewarded), 0, 10).Draw(t, "before") {
			book.Apply(r)
		}
		state, digest := book.Encode(), book.Digest()
		var changes []Change
		for _, r := range rapid.SliceOfN(rapid.Custom(drawRewarded), 1, 5).Draw(t, "undone") {
			changes = append(changes, book.Apply(r)...)
		}
		book.Revert(changes)
		if !bytes.Equal(state, book.Encode()) || digest != book.Digest() {
			t.Fatal("revert left a trace")
		}
	})
}

// The changes are enough to store the book.
func TestChangesCarryTheState(t *testing.T) {
	type key struct {
		problem string
		order   uint64
	}
	rapid.Check(t, func(t *rapid.T) {
		book, stored := New(), map[key]Entry{}
		for _, r := range rapid.SliceOfN(rapid.Custom(drawRewarded), 0, 20).Draw(t, "groups") {
			for _, c := range book.Apply(r) {
				if c.Count == 0 {
					delete(stored, key{c.ProblemID, c.Order})
				} else {
					stored[key{c.ProblemID, c.Order}] = c.Entry
				}
			}
		}
		again := New()
		for _, e := range stored {
			if err := again.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(book.Encode(), again.Encode()) || book.Digest() != again.Digest() {
			t.Fatal("changes do not add up to the book")
		}
	})
}

func TestCountIsBounded(t *testing.T) {
	r := &events.GroupRewarded{Plan: events.Plan{Purpose: events.PurposeTrain}, ProblemID: "p",
		Deltas: []events.BookDelta{{Call: "f()", Expected: "1", Change: int(^uint(0) >> 1)}}}
	b := New()
	b.Apply(r)
	b.Apply(r)
	if got := b.Top("p", 1)[0].Count; got != MaxCount {
		t.Errorf("count %d, want %d", got, MaxCount)
	}
	r.Deltas[0].Change = -r.Deltas[0].Change - 1
	b.Apply(r)
	if b.Size() != 0 || b.Digest() != (Digest{}) {
		t.Errorf("size %d, digest %x after everything left", b.Size(), b.Digest())
	}
}

// TestTranscript reads testdata/book: `apply problem=P [eval]` with lines of
// "change call expected", `revert` of the latest apply, `top problem=P k=N`,
// and `book`.
func TestTranscript(t *testing.T) {
	book := New()
	var latest []Change
	datadriven.RunTest(t, "testdata/book", func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		switch d.Cmd {
		case "apply":
			r := &events.GroupRewarded{Plan: events.Plan{Purpose: events.PurposeTrain}}
			d.ScanArgs(t, "problem", &r.ProblemID)
			if d.HasArg("eval") {
				r.Plan.Purpose = events.PurposeEval
			}
			for line := range strings.Lines(d.Input) {
				f := strings.Fields(line)
				change, err := strconv.Atoi(f[0])
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				r.Deltas = append(r.Deltas, events.BookDelta{Call: f[1], Expected: f[2], Change: change})
			}
			latest = book.Apply(r)
			for _, c := range latest {
				fmt.Fprintf(&out, "%s #%d %s == %s: %d -> %d\n", c.ProblemID, c.Order, c.Call, c.Expected, c.Before, c.Count)
			}
		case "revert":
			book.Revert(latest)
		case "top":
			var problem string
			var k int
			d.ScanArgs(t, "problem", &problem)
			d.ScanArgs(t, "k", &k)
			for _, h := range book.Top(problem, k) {
				fmt.Fprintf(&out, "%d x %s == %s\n", h.Count, h.Call, h.Expected)
			}
		case "book":
			for e := range book.All() {
				fmt.Fprintf(&out, "%s #%d %s == %s: %d\n", e.ProblemID, e.Order, e.Call, e.Expected, e.Count)
			}
			fmt.Fprintf(&out, "%d tests, digest %.8x, encoded %d bytes\n", book.Size(), book.Digest().Bytes(), len(book.Encode()))
		default:
			d.Fatalf(t, "unknown command")
		}
		if out.Len() == 0 {
			return "nothing\n"
		}
		return out.String()
	})
}

func FuzzDecodeEntry(f *testing.F) {
	for i := range 3 {
		e := Entry{ProblemID: "p" + strconv.Itoa(i%2), Order: uint64(i + 1), Call: "f(" + strconv.Itoa(i) + ")", Expected: "[]", Count: 200 * (i + 1)}
		f.Add(e.Append(nil))
	}
	f.Add([]byte{})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{0x80, 0x00})
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, rest, err := DecodeEntry(raw)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(append(e.Append(nil), rest...), raw) {
			t.Fatalf("%x decodes, but is not canonical", raw)
		}
	})
}

func TestAddRefusesATestTwice(t *testing.T) {
	b := New()
	e := Entry{ProblemID: "p", Order: 1, Call: "f()", Expected: "1", Count: 1}
	if err := b.Add(e); err != nil {
		t.Fatal(err)
	}
	if e.Order = 2; !errors.Is(b.Add(e), ErrMalformed) || b.Size() != 1 {
		t.Errorf("%d tests after the second Add", b.Size())
	}
}

func BenchmarkApply(b *testing.B) {
	var groups []*events.GroupRewarded
	for p := range 64 {
		r := &events.GroupRewarded{Plan: events.Plan{Purpose: events.PurposeTrain}, ProblemID: "problem-" + strconv.Itoa(p)}
		for i := range 16 {
			change := 1
			if i < 4 {
				change = -1
			}
			r.Deltas = append(r.Deltas, events.BookDelta{Call: fmt.Sprintf("solve([%d, 2, 3])", i%8), Expected: "[1, 2, 3]", Change: change})
		}
		groups = append(groups, r)
	}
	book := New()
	for i := 0; b.Loop(); i++ {
		book.Apply(groups[i%len(groups)])
	}
}
