package problems

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codea1/events"
)

// Half of a surrogate pair is no character. Each field with one is refused with its
// name; encoding/json would replace it silently.
func TestLoneSurrogates(t *testing.T) {
	row := `{"id":"i%s","source":"s%s","question":"q%s","entry_point":"f","solution":"def f(x):\n    return x%s","tests":["assert f(1) == 1%s"]}`
	fields := []string{"id", "source", "question", "solution", "tests"}
	read := func(at int, text string) (Problem, error) {
		texts := make([]any, len(fields))
		for i := range texts {
			texts[i] = ""
		}
		texts[at] = text
		path := writeFile(t, "set.jsonl", fmt.Sprintf(row, texts...))
		set, _, err := ReadAll(t.Context(), path, LoadOptions{})
		if err != nil {
			return Problem{}, err
		}
		return set[0], nil
	}
	for at, field := range fields {
		for _, half := range []string{`\ud83d`, `\uDE00`, `\ude00\ud83d`, `\ud83d\ud83d\ude00`, `\ud83d\n`, `\ud83dx`, `\\\ud83d`, `\ud83d\\ude00`} {
			_, err := read(at, half)
			var bad *BadRowError
			if !errors.As(err, &bad) || bad.Row != 1 || fieldOf(bad) != field || !strings.Contains(err.Error(), "half of a surrogate pair") {
				t.Errorf("%s with %s: %v", field, half, err)
			}
		}
		for _, whole := range []string{`\ud83d\ude00`, `\\ud83d`, `\\\\ud83d`, `\u00e9`, `\ufffd`, `\ud83d\ude00\ud83d\uDE01`} {
			if _, err := read(at, whole); err != nil {
				t.Errorf("%s with %s: %v", field, whole, err)
			}
		}
	}
	if p, err := read(2, `\ud83d\ude00 \\ud83d`); err != nil || p.Question != `q😀 \ud83d` {
		t.Errorf("%q, %v", p.Question, err)
	}
}

// A set that is no regular file is refused at once, in every format.
func TestSetsAreRegularFiles(t *testing.T) {
	for _, name := range []string{"set.jsonl", "set.jsonl.gz", "set.parquet"} {
		path := filepath.Join(t.TempDir(), name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ReadAll(t.Context(), path, LoadOptions{OnBadRow: SkipBadRows}); err == nil || !strings.Contains(err.Error(), path+" is a named pipe; want a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A set without a ground truth that passes is an error with the first reasons; one of
// which many fail is a warning.
func TestCheckSample(t *testing.T) {
	checker := newPythonChecker(t)
	set := func(wrong ...bool) (set []events.Problem) {
		for i, wrong := range wrong {
			p := events.Problem{ID: fmt.Sprint("p", i), EntryPoint: "f", Solution: "def f(x):\n    return x", Golden: []string{"assert f(1) == 1", "assert f(2) == 2"}}
			if wrong {
				p.Golden[1] = "assert f(2) == 3, 'wrong'"
			}
			set = append(set, p)
		}
		return append(set, events.Problem{ID: "untested", EntryPoint: "f", Solution: "def f(x):\n    return 1 / 0"})
	}
	for _, c := range []struct {
		set           []events.Problem
		warning, fail string
	}{
		{set(true, true, true, true), "", "no ground truth passes its tests: all of 4 that were checked fail; p0: fail: AssertionError: wrong; p1: fail: AssertionError: wrong; p2: fail: AssertionError: wrong"},
		{set(true), "", "all of 1 that were checked fail; p0: "},
		{set(false, true, false), "1 of 3 ground truths that were checked fail their tests; p1: fail: AssertionError: wrong", ""},
		{set(false, false), "", ""},
		{set(), "", ""},
	} {
		warning, err := CheckSample(t.Context(), checker, c.set, 2)
		if warning != c.warning || (err == nil) != (c.fail == "") || err != nil && (!errors.Is(err, ErrNoTruth) || !strings.Contains(err.Error(), c.fail)) {
			t.Errorf("%d problems: %q, %v\nwant %q, %q", len(c.set), warning, err, c.warning, c.fail)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := CheckSample(ctx, checker, set(true), 2); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	tenth := set(false, false, false, false, false, false, false, false, false, true)
	if warning, err := CheckSample(t.Context(), passing{}, tenth, 2); err != nil || warning != "" {
		t.Errorf("one of ten fails: %q, %v", warning, err)
	}
	large := make([]bool, 3*sampleProblems)
	for i := range large {
		large[i] = i%3 > 0 // all but every third, which are checked
	}
	if warning, err := CheckSample(t.Context(), passing{}, set(large...), 2); err != nil || warning != "" {
		t.Errorf("%q, %v", warning, err)
	}
}

// passing passes every test that does not state a wrong value.
type passing struct{}

func (passing) Check(_ context.Context, _, _ string, tests []string) ([]events.GoldenVerdict, error) {
	verdicts := make([]events.GoldenVerdict, len(tests))
	for i, test := range tests {
		verdicts[i].Verdict = events.VerdictPass
		if strings.Contains(test, "wrong") {
			verdicts[i].Verdict = events.VerdictFail
		}
	}
	return verdicts, nil
}
