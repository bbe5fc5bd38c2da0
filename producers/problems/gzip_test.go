package problems

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// zippedSet returns three problems as a file in .jsonl.gz.
func zippedSet(t testing.TB) []byte {
	t.Helper()
	var lines []string
	for _, id := range []string{"a", "b", "c"} {
		lines = append(lines, strings.Replace(goodLine, `"id":"a"`, `"id":"`+id+`"`, 1))
	}
	data, err := os.ReadFile(writeFile(t, "set.jsonl.gz", strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// loadZipped reads a set from a file that it writes at path.
func loadZipped(t testing.TB, path string, data []byte, policy BadRowPolicy) ([]Problem, error) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	set, _, err := ReadAll(t.Context(), path, LoadOptions{OnBadRow: policy})
	if err != nil && !strings.Contains(err.Error(), path) {
		t.Errorf("the error %q does not name the file", err)
	}
	return set, err
}

// A gzip file that is cut anywhere is truncated. No row of it is blamed.
func TestTruncatedGzip(t *testing.T) {
	whole, path := zippedSet(t), filepath.Join(t.TempDir(), "set.jsonl.gz")
	for size := range whole {
		for _, policy := range []BadRowPolicy{FailOnBadRows, SkipBadRows} {
			if _, err := loadZipped(t, path, whole[:size], policy); !errors.Is(err, errTruncatedGzip) {
				t.Errorf("%d of %d bytes (%s): %v", size, len(whole), policy, err)
			}
		}
	}
}

// A changed byte either changes nothing or is reported for the file.
func TestDamagedGzip(t *testing.T) {
	whole, path := zippedSet(t), filepath.Join(t.TempDir(), "set.jsonl.gz")
	want, err := loadZipped(t, path, whole, FailOnBadRows)
	if err != nil {
		t.Fatal(err)
	}
	for at := range whole {
		data := bytes.Clone(whole)
		data[at] ^= 0x24
		for _, policy := range []BadRowPolicy{FailOnBadRows, SkipBadRows} {
			set, err := loadZipped(t, path, data, policy)
			if bad := (*BadRowError)(nil); errors.As(err, &bad) {
				t.Errorf("byte %d (%s): the row is blamed: %v", at, policy, err)
			} else if err != nil && !strings.Contains(err.Error(), "gzip") {
				t.Errorf("byte %d (%s): %v", at, policy, err)
			} else if err == nil && !cmp.Equal(want, set) {
				t.Errorf("byte %d (%s): the set differs and no error says so", at, policy)
			}
		}
	}
}

// A bad row in an intact file is still a bad row.
func TestBadRowInGzip(t *testing.T) {
	path := writeFile(t, "set.jsonl.gz", goodLine+"\n{")
	_, _, err := ReadAll(t.Context(), path, LoadOptions{})
	if bad := (*BadRowError)(nil); !errors.As(err, &bad) || bad.Row != 2 {
		t.Errorf("got %v", err)
	}
	set, skipped, err := ReadAll(t.Context(), path, LoadOptions{OnBadRow: SkipBadRows})
	if err != nil || len(set) != 1 || skipped != 1 {
		t.Errorf("%d problems, %d skipped, %v", len(set), skipped, err)
	}
}

func FuzzGzip(f *testing.F) {
	whole := zippedSet(f)
	f.Add(whole)
	f.Add(whole[:len(whole)-9])
	f.Add(whole[:5])
	f.Add([]byte(goodLine))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "set.jsonl.gz")
		_, err := loadZipped(t, path, data, FailOnBadRows)
		if bad := (*BadRowError)(nil); errors.As(err, &bad) && checkGzip(bad.File) != nil {
			t.Errorf("a row of a damaged file is blamed: %v", err)
		}
	})
}
