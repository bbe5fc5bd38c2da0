package execution

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"codea1/events"
)

// row is one problem of the data sets beside the repository.
type row struct {
	ID         string   `json:"id"`
	EntryPoint string   `json:"entry_point"`
	Solution   string   `json:"solution"`
	Tests      []string `json:"tests"`
	Buggy      []struct {
		Code string `json:"code"`
	} `json:"buggy"`
}

// readRows reads a data set, or skips the test where there is none.
func readRows(t testing.TB, name string) []row {
	t.Helper()
	directory, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	path := ""
	for path == "" {
		candidate := filepath.Join(directory, "shared", "data", name)
		if _, err := os.Stat(candidate); err == nil {
			path = candidate
		} else if parent := filepath.Dir(directory); parent != directory {
			directory = parent
		} else {
			t.Skipf("no shared/data/%s in a folder above", name)
		}
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestDataSets runs every ground truth on its own golden tests.
func TestDataSets(t *testing.T) {
	for _, set := range []struct {
		file  string
		every int // run one row of so many when testing.Short
		traps []string
	}{
		{"humaneval.jsonl.gz", 1, nil},
		{"mbpp_sanitized.jsonl.gz", 1, nil},
		{"leetcode_v0_3_0-test.jsonl.gz", 1, nil},
		{"leetcode_v0_2_0-train.jsonl.gz", 1, nil},
	} {
		t.Run(set.file, func(t *testing.T) {
			rows := readRows(t, set.file)
			p := openPool(t, Config{CallTimeout: 60 * time.Second, JobTimeout: 120 * time.Second, MemoryBytes: 4 << 30})
			var inProcess, total atomic.Int64
			var group errgroup.Group
			group.SetLimit(4)
			for i, r := range rows {
				if slices.Contains(set.traps, r.ID) || i%set.every != 0 {
					continue
				}
				group.Go(func() error {
					verdicts, err := p.Check(t.Context(), r.Solution, r.EntryPoint, r.Tests)
					if err != nil {
						return err
					}
					for k, v := range verdicts {
						total.Add(1)
						if v.InProcess {
							inProcess.Add(1)
						}
						if v.Verdict != events.VerdictPass {
							t.Errorf("%s test %d: %s %s\n%.200s", r.ID, k, v.Verdict, v.Detail, r.Tests[k])
						}
					}
					return nil
				})
			}
			if err := group.Wait(); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d tests, %d of them in-process", total.Load(), inProcess.Load())
		})
	}
}
