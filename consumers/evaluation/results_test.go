package evaluation

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// answers returns the answers of a text: one letter per answer, in upper case if it
// passes the plus tests too. Equal letters behave in the same way; x, y and z fail.
func answersOf(text string) []Answer {
	var all []Answer
	for _, r := range text {
		letter := string(r)
		all = append(all, Answer{
			Base: !strings.Contains("xyz", letter), Plus: strings.ToUpper(letter) == letter, Behaviour: letter,
		})
	}
	return all
}

func TestMajority(t *testing.T) {
	for _, c := range []struct{ answers, want string }{
		{"A", "A"}, {"xAA", "A"}, {"xA", "x"}, {"AxxA", "A"}, {"xAAxx", "x"}, {"aBcBa", "a"}, {"xyzAA", "A"},
	} {
		r := Result{ID: "p", Answers: answersOf(c.answers)}
		if got := r.Majority().Behaviour; got != c.want {
			t.Errorf("%s: majority %s, want %s", c.answers, got, c.want)
		}
	}
}

// TestSummarize has figures that were computed by hand.
func TestSummarize(t *testing.T) {
	results := []Result{
		{ID: "a", Answers: answersOf("AAAAxxxx")},  // 4 of 8
		{ID: "b", Answers: answersOf("aaxxxxxx")},  // base 2 of 8, plus none
		{ID: "c", Answers: answersOf("AAAAAAAA")},  // all
		{ID: "d", Answers: answersOf("xxxxxxxxx")}, // none of 9
	}
	base, plus := Summarize(results, Suites[0]), Summarize(results, Suites[1])
	near := cmpopts.EquateApprox(0, 1e-12)
	ignore := cmpopts.IgnoreFields(Summary{}, "Low", "High")
	// pass@8 of b is 1: 8 of 8 answers hold a correct one. d has 9 answers, none correct.
	want := Summary{Suite: "base", Problems: 4, Answers: 8, Avg: (0.5 + 0.25 + 1) / 4, PassAt: []PassValue{{1, 0.4375}, {8, 0.75}}, Majority: 0.5}
	if d := cmp.Diff(want, base, near, ignore); d != "" {
		t.Error(d)
	}
	want = Summary{Suite: "base+plus", Problems: 4, Answers: 8, Avg: 0.375, PassAt: []PassValue{{1, 0.375}, {8, 0.5}}, Majority: 0.5}
	if d := cmp.Diff(want, plus, near, ignore); d != "" {
		t.Error(d)
	}
	if !(base.Low <= base.Avg && base.Avg <= base.High) || base.Low < 0 || base.High > 1 || base.Low == base.High {
		t.Errorf("interval %v to %v of %v", base.Low, base.High, base.Avg)
	}
	var table bytes.Buffer
	if err := PrintSummaries(&table, []Summary{base, plus}); err != nil || !strings.Contains(table.String(), "PASS@8") || strings.Contains(table.String(), "PASS@32") || !strings.Contains(table.String(), "43.8%") {
		t.Errorf("%v\n%s", err, &table)
	}
	one := Summarize(results[:1], Suites[0])
	if one.Low != 0.5 || one.High != 0.5 {
		t.Errorf("one problem: interval %v to %v", one.Low, one.High)
	}
}

// TestMcNemar compares with values computed by hand: 2 * sum C(n, i) / 2^n.
func TestMcNemar(t *testing.T) {
	for _, c := range []struct {
		b, c int
		want float64
	}{
		{0, 0, 1}, {1, 0, 1}, {0, 5, 2.0 / 32}, {1, 5, 2 * (1 + 6) / 64.0}, {5, 1, 2 * (1 + 6) / 64.0}, {3, 3, 1},
		{2, 8, 2 * (1 + 10 + 45) / 1024.0}, {0, 3000, 0},
	} {
		if got := McNemar(c.b, c.c); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("McNemar(%d, %d) = %v, want %v", c.b, c.c, got, c.want)
		}
	}
}

func TestCompare(t *testing.T) {
	first := []Result{
		{ID: "a", Answers: answersOf("AAAx")}, {ID: "b", Answers: answersOf("xxxx")},
		{ID: "c", Answers: answersOf("AxAx")}, {ID: "only", Answers: answersOf("A")},
	}
	second := []Result{
		{ID: "c", Answers: answersOf("AAAx")}, {ID: "b", Answers: answersOf("A")}, {ID: "a", Answers: answersOf("Ax")},
	}
	// Shares 0.75, 0, 0.5 and 0.5, 1, 0.75. The first alone solves a: half is not
	// more than half.
	got, err := Compare(first, second, Suites[1])
	if err != nil {
		t.Fatal(err)
	}
	want := Comparison{Suite: "base+plus", Problems: 3, First: 1.25 / 3, Second: 2.25 / 3, Difference: 1.0 / 3, OnlyFirst: 1, OnlySecond: 2, McNemar: 1, Low: -0.25, High: 1}
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Error(d)
	}
	if _, err := Compare(first[3:], second, Suites[0]); !errors.Is(err, ErrNoCommon) {
		t.Errorf("without a common problem: %v", err)
	}
}

func writeResults(t *testing.T, results []Result) string {
	t.Helper()
	var text []byte
	for _, r := range results {
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, line...), '\n')
	}
	path := filepath.Join(t.TempDir(), "results.jsonl")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCompareCommand(t *testing.T) {
	c := CompareCommand{
		First:  writeResults(t, []Result{{ID: "a", Answers: answersOf("A")}, {ID: "b", Answers: answersOf("a")}, {ID: "c", Answers: answersOf("x")}}),
		Second: writeResults(t, []Result{{ID: "a", Answers: answersOf("x")}, {ID: "b", Answers: answersOf("A")}}),
	}
	var table, again bytes.Buffer
	if err := c.Run(&table); err != nil {
		t.Fatal(err)
	}
	if err := c.Run(&again); err != nil || again.String() != table.String() {
		t.Errorf("the intervals of two runs differ: %v", err)
	}
	lines := strings.Split(table.String(), "\n")
	for i, want := range map[int]string{4: "2  100.0%   50.0%  -50.0 points", 5: "2   50.0%   50.0%  +0.0 points", 7: "1 problems are in one file only"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
	// Problems without plus tests have one row.
	all := []Result{{ID: "a", All: true, Answers: answersOf("A")}, {ID: "b", All: true, Answers: answersOf("a")}}
	one := CompareCommand{First: writeResults(t, all), Second: writeResults(t, all)}
	table.Reset()
	if err := one.Run(&table); err != nil || strings.Contains(table.String(), "base") || strings.Count(table.String(), "\nall ") != 1 {
		t.Errorf("%s%v", table.String(), err)
	}
	c.JSON = true
	var rows bytes.Buffer
	if err := c.Run(&rows); err != nil {
		t.Fatal(err)
	}
	var row Comparison
	if err := json.NewDecoder(&rows).Decode(&row); err != nil || row.OnlyFirst != 1 || row.McNemar != 1 {
		t.Errorf("%+v, %v", row, err)
	}
}

func TestReadResultsNamesTheMistake(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "it has no results",
		"{}\n":                              "results.jsonl:1: not a result of codea1 eval: want id and answers",
		`{"id":"a","answers":[{}]}` + "\n[": "results.jsonl:2: not a result",
		strings.Repeat(`{"id":"a","answers":[{}]}`+"\n", 2): "results.jsonl:2: not a result of codea1 eval: problem a occurs twice",
	} {
		path := filepath.Join(t.TempDir(), "results.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadResults(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
