package problems

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// sharedData returns the folder of real data sets beside the repository, and
// skips the test where there is none.
func sharedData(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		data := filepath.Join(dir, "shared", "data")
		if _, err := os.Stat(filepath.Join(data, "README.md")); err == nil {
			return data
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Skip("no shared/data beside the repository")
		}
		dir = parent
	}
}

func TestRealData(t *testing.T) {
	data := sharedData(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatalf("the project needs Python 3: %v", err)
	}
	for _, test := range []struct {
		file        string
		rows, buggy int
		omitted     int // tests too large for an event
	}{
		{file: "humaneval.jsonl.gz", rows: 164},
		{file: "humanevalpack_fix.jsonl.gz", rows: 164, buggy: 164},
		{file: "mbpp_sanitized.jsonl.gz", rows: 427},
		{file: "leetcode_v0_2_0-train.jsonl.gz", rows: 1888},
		{file: "leetcode_v0_3_0-test.jsonl.gz", rows: 386, omitted: 1},
		{file: "validation_data_mix.parquet", rows: 542, omitted: 3},
	} {
		t.Run(test.file, func(t *testing.T) {
			set, _, err := ReadAll(t.Context(), filepath.Join(data, test.file), LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			buggy, omitted := 0, 0
			var sources bytes.Buffer
			encoder := json.NewEncoder(&sources)
			for _, p := range set {
				buggy += len(p.Buggy)
				if len(p.Tests) == 0 {
					t.Errorf("%s has no tests", p.ID)
				}
				posable, left := p.Posable(true)
				omitted += left
				if err := posable.Validate(); err != nil {
					t.Errorf("%s cannot be posed: %v", p.ID, err)
				}
				if err := encoder.Encode([]string{p.ID, p.Solution}); err != nil {
					t.Fatal(err)
				}
			}
			if omitted != test.omitted {
				t.Errorf("%d tests are too large for an event, want %d", omitted, test.omitted)
			}
			if len(set) != test.rows || buggy != test.buggy {
				t.Errorf("%d rows and %d buggy solutions, want %d and %d", len(set), buggy, test.rows, test.buggy)
			}
			// Every solution is whole: it compiles.
			command := exec.CommandContext(t.Context(), python, "-I", "-W", "ignore", "-c", `
import ast, json, sys
if sys.version_info < (3, 10):
    sys.exit()  # some have match statements
for line in sys.stdin:
    id, source = json.loads(line)
    try:
        ast.parse(source)
    except SyntaxError as e:
        print(id, e)
`)
			command.Stdin = &sources
			output, err := command.CombinedOutput()
			if err != nil || len(output) > 0 {
				t.Errorf("solutions that do not compile: %v\n%.2000s", err, output)
			}
		})
	}
}
