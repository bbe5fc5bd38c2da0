package problems

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

func writeParquet[T any](t *testing.T, rows ...T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "set.parquet")
	if err := parquet.WriteFile(path, rows); err != nil {
		t.Fatal(err)
	}
	return path
}

type testInfo struct {
	FunctionName        string `parquet:"function_name"`
	FunctionDeclaration string `parquet:"function_declaration"`
}

type kodCodeRow struct {
	Style      string     `parquet:"style"`
	Subset     string     `parquet:"subset"`
	QuestionID string     `parquet:"question_id"`
	Question   string     `parquet:"question"`
	Solution   *string    `parquet:"solution,optional"`
	Test       string     `parquet:"test"`
	TestInfo   []testInfo `parquet:"test_info,list"`
	Difficulty string     `parquet:"gpt_difficulty"`
}

const pytestFile = `import math
import pytest
from solution import (
    add,
    sub,
)

LIMIT = {
    'a': 1,
}

def helper(x):
    """Text at
the margin: def test_none():
"""
    return x

def test_add():
    assert add(1, 2) == helper(3)

@pytest.mark.parametrize('a', [1, 2])
def test_many(a):
    assert add(a, 0) == a

def test_raises():
    with pytest.raises(TypeError):
        add(1)

@staticmethod
def test_limit():  # it's fine
    assert add(LIMIT['a'], 0) == 1

if __name__ == '__main__':
    test_add()
`

func TestLoadKodCode(t *testing.T) {
	solution := "def add(a, b):\n    return a + b"
	info := []testInfo{{"add", "def add(a, b):"}, {"sub", "def sub(a, b):"}}
	path := writeParquet(t,
		kodCodeRow{"instruct", "Prefill", "Prefill_1_I", "Add.", &solution, pytestFile, info, "hard"},
		kodCodeRow{"instruct", "Prefill", "Prefill_2_I", "Add.", nil, pytestFile, info, "hard"},
		kodCodeRow{"instruct", "Prefill", "Prefill_3_I", "Add.", &solution, "import pytest\n", info, "hard"},
		kodCodeRow{"instruct", "Prefill", "Prefill_4_I", "Add.", &solution, pytestFile, nil, "hard"},
	)
	var bad []string
	set, _, err := ReadAll(t.Context(), path, LoadOptions{OnBadRow: SkipBadRows, Report: func(e *BadRowError) {
		bad = append(bad, strings.TrimPrefix(e.Error(), path+": "))
	}})
	if err != nil {
		t.Fatal(err)
	}
	shared := `import math
LIMIT = {
    'a': 1,
}

def helper(x):
    """Text at
the margin: def test_none():
"""
    return x

if __name__ == '__main__':
    test_add()
`
	want := []Problem{{
		ID: "Prefill_1_I", Source: "KodCode-V1/Prefill", Difficulty: "hard", Question: "Add.", StarterCode: "def add(a, b):",
		EntryPoint: "add", Solution: solution,
		Tests: []string{
			shared + "def test_add():\n    assert add(1, 2) == helper(3)\n\ntest_add()\n",
			shared + "@staticmethod\ndef test_limit():  # it's fine\n    assert add(LIMIT['a'], 0) == 1\n\ntest_limit()\n",
		},
	}}
	if diff := cmp.Diff(want, set); diff != "" {
		t.Errorf("KodCode (-want +got):\n%s", diff)
	}
	wantBad := []string{
		"row 2: field solution is missing",
		"row 3: field test has no test function that runs without pytest",
		"row 4: field test_info.function_name is missing",
	}
	if diff := cmp.Diff(wantBad, bad); diff != "" {
		t.Errorf("bad rows (-want +got):\n%s", diff)
	}
}

type message struct {
	Role    string `parquet:"role"`
	Content string `parquet:"content"`
}

type trainingInfo struct {
	QuestionID string `parquet:"question_id"`
}

type trainingRow struct {
	DataSource string       `parquet:"data_source"`
	Prompt     []message    `parquet:"prompt,list"`
	Question   string       `parquet:"clean_description"`
	Solution   string       `parquet:"GT_code"`
	Tests      []string     `parquet:"GT_test,list"`
	Info       trainingInfo `parquet:"extra_info"`
}

func TestLoadReferenceTraining(t *testing.T) {
	solution := "def helper(a):\n    return a\n\ndef add(a, b):\n    return helper(a) + b\n"
	tests := []string{"assert add(1, 2) == 3", "assert add(0, 0) == 0"}
	prompt := []message{{"system", "You help."}, {"user", "Add."}}
	path := writeParquet(t,
		trainingRow{"kodcode_light", prompt, "Add.", solution, tests, trainingInfo{"q1"}},
		trainingRow{"kodcode_light", prompt, "Add.", solution, []string{"assert plus(1, 2) == 3"}, trainingInfo{"q2"}},
		trainingRow{"kodcode_light", prompt, "", solution, tests, trainingInfo{"q3"}},
	)
	var fields []string
	set, skipped, err := ReadAll(t.Context(), path, LoadOptions{OnBadRow: SkipBadRows, Report: func(e *BadRowError) { fields = append(fields, fieldOf(e)) }})
	if err != nil {
		t.Fatal(err)
	}
	want := []Problem{{ID: "q1", Source: "kodcode_light", Question: "Add.", EntryPoint: "add", Solution: solution, Tests: tests}}
	if diff := cmp.Diff(want, set); diff != "" {
		t.Errorf("training set (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"GT_code", "question"}, fields); diff != "" || skipped != 2 {
		t.Errorf("%d bad rows, their fields (-want +got):\n%s", skipped, diff)
	}
}

type validationRow struct {
	Description string         `parquet:"description"`
	Solution    string         `parquet:"GT_code"`
	Problem     string         `parquet:"problem"`
	Test        string         `parquet:"test"`
	DataSource  string         `parquet:"data_source"`
	Info        validationInfo `parquet:"extra_info"`
}

type validationInfo struct {
	FunctionName string `parquet:"function_name"`
	QuestionID   string `parquet:"question_id"`
}

// The ground truth of a HumanEval+ row is the body of the function that the
// question opens; the ground truth of an MBPP+ row is whole.
func TestLoadReferenceValidation(t *testing.T) {
	path := writeParquet(t,
		validationRow{"Add.", "    return a + b\n", "def add(a, b):\n    \"\"\"Add.\"\"\"\n", "def check(candidate):\n    assert candidate(1, 2) == 3\n",
			"humanevalplus", validationInfo{"add", "HumanEval/0"}},
		validationRow{"Add.", "def add(a, b):\n    return a + b\n", "def add(a, b):\n\"\"\"Add.\"\"\"\n", "assert add(1, 2) == 3\n",
			"mbppplus", validationInfo{"add", "MBPP/1"}},
	)
	set, _, err := ReadAll(t.Context(), path, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Problem{
		{
			ID: "HumanEval/0", Source: "humanevalplus", EntryPoint: "add", Question: "def add(a, b):\n    \"\"\"Add.\"\"\"\n",
			Solution: "def add(a, b):\n    \"\"\"Add.\"\"\"\n    return a + b\n",
			Tests:    []string{"def check(candidate):\n    assert candidate(1, 2) == 3\n\ncheck(add)\n"},
		},
		{
			ID: "MBPP/1", Source: "mbppplus", EntryPoint: "add", Question: "def add(a, b):\n\"\"\"Add.\"\"\"\n",
			Solution: "def add(a, b):\n    return a + b\n", Tests: []string{"assert add(1, 2) == 3\n"},
		},
	}
	if diff := cmp.Diff(want, set); diff != "" {
		t.Errorf("validation set (-want +got):\n%s", diff)
	}
}

// ownRow is a row of a set as `codea1 replay export --table golden` writes it.
type ownRow struct {
	ID         string   `parquet:"id"`
	Source     string   `parquet:"source,dict"`
	Question   string   `parquet:"question"`
	EntryPoint string   `parquet:"entry_point"`
	Solution   string   `parquet:"solution"`
	Tests      []string `parquet:"tests"`
}

func TestLoadOwn(t *testing.T) {
	row := ownRow{"a", "codea1 run r1", "Add.", "add", "def add(a, b):\n    return a + b", []string{"assert add(1, 2) == 3", "assert add(0, 0) == 0"}}
	none := row
	none.ID, none.Tests = "b", nil
	var bad []string
	got, skipped, err := ReadAll(t.Context(), writeParquet(t, row, none), LoadOptions{
		OnBadRow: SkipBadRows, Report: func(e *BadRowError) { bad = append(bad, fieldOf(e)) },
	})
	if err != nil || skipped != 1 || len(bad) != 1 || bad[0] != "tests" {
		t.Fatalf("skipped %d (%v), %v", skipped, bad, err)
	}
	want := []Problem{{ID: row.ID, Source: row.Source, Question: row.Question, EntryPoint: row.EntryPoint, Solution: row.Solution, Tests: row.Tests}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParquetLayouts(t *testing.T) {
	type wrongKind struct {
		QuestionID int64      `parquet:"question_id"`
		Question   string     `parquet:"question"`
		Solution   string     `parquet:"solution"`
		Test       string     `parquet:"test"`
		TestInfo   []testInfo `parquet:"test_info,list"`
	}
	_, _, err := ReadAll(t.Context(), writeParquet(t, wrongKind{1, "q", "s", "t", nil}), LoadOptions{})
	if bad := (*BadRowError)(nil); !errors.As(err, &bad) || fieldOf(bad) != "question_id" || !strings.Contains(err.Error(), "INT64") {
		t.Errorf("a column of another type ends with %v", err)
	}
	_, _, err = ReadAll(t.Context(), writeParquet(t, struct {
		Question string `parquet:"question"`
	}{"q"}), LoadOptions{})
	if !errors.Is(err, ErrUnknownSet) || !strings.Contains(err.Error(), "for KodCode-V1 it lacks question_id, solution") {
		t.Errorf("columns of no known layout end with %v", err)
	}
}

func TestCorruptParquet(t *testing.T) {
	solution := "s"
	path := writeParquet(t, kodCodeRow{"i", "p", "1", "q", &solution, pytestFile, []testInfo{{"add", ""}}, "hard"})
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 4; at < len(whole)-8; at += 7 {
		broken := append([]byte(nil), whole...)
		for i := at; i < min(at+4, len(broken)-8); i++ {
			broken[i] ^= 0xff
		}
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		// Reading does not panic and returns no invalid problem.
		set, _, err := ReadAll(t.Context(), path, LoadOptions{OnBadRow: SkipBadRows})
		for i := range set {
			if err := set[i].Validate(); err != nil {
				t.Errorf("byte %d: %v", at, err)
			}
		}
		_ = err
	}
}
