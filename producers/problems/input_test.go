package problems

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
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
