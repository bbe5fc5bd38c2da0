package execution

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution/internal/sandboxtest"
	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
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

// generous lets a slow ground truth finish on a busy machine.
var generous = sandbox.Config{CallTimeout: 60 * time.Second, JobTimeout: 120 * time.Second, MemoryBytes: 2 << 30}

// TestDataSets runs ground truths on their own golden tests. It takes some rows
// of each data set; `problems check` runs all of them.
func TestDataSets(t *testing.T) {
	t.Parallel()
	for _, set := range []struct {
		file  string
		every int
		since int // the minor version of Python 3 that it is written for
	}{
		{"humaneval.jsonl.gz", 5, 0},
		{"mbpp_sanitized.jsonl.gz", 10, 0},
		{"leetcode_v0_3_0-test.jsonl.gz", 10, 10},
		{"leetcode_v0_2_0-train.jsonl.gz", 40, 0},
	} {
		t.Run(set.file, func(t *testing.T) {
			rows := readRows(t, set.file)
			x := openExecutor(t, generous)
			version, err := x.pool.Run(t.Context(), sandbox.Program{Code: "import sys"}, []string{"sys.version_info[1]"})
			if err != nil {
				t.Fatal(err)
			}
			if minor, err := strconv.Atoi(literal.Text(version.Outcomes[0].Value)); err != nil || minor < set.since {
				t.Skipf("its solutions are for Python 3.%d: %v", set.since, err)
			}
			var inProcess, total atomic.Int64
			var group errgroup.Group
			group.SetLimit(4)
			for i := 0; i < len(rows); i += sandboxtest.Every(set.every) {
				r := rows[i]
				group.Go(func() error {
					verdicts, err := x.Check(t.Context(), r.Solution, r.EntryPoint, r.Tests)
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

// TestBuggySolutionsAreCaught runs the known bugs of some rows on the golden
// tests.
func TestBuggySolutionsAreCaught(t *testing.T) {
	sandboxtest.OnlyThorough(t, "TestDataSets has the same rows")
	t.Parallel()
	rows := readRows(t, "humanevalpack_fix.jsonl.gz")
	x := openExecutor(t, sandbox.Config{CallTimeout: time.Second, JobTimeout: 2 * time.Second})
	var group errgroup.Group
	group.SetLimit(4)
	for i := 0; i < len(rows); i += sandboxtest.Every(3) {
		r := rows[i]
		for _, buggy := range r.Buggy {
			group.Go(func() error {
				verdicts, err := x.Check(t.Context(), buggy.Code, r.EntryPoint, r.Tests)
				if err != nil {
					return err
				}
				if !slices.ContainsFunc(verdicts, func(v events.GoldenVerdict) bool { return v.Verdict != events.VerdictPass }) {
					t.Errorf("%s: the bug passes %d tests", r.ID, len(verdicts))
				}
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}
