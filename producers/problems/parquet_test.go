package problems

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

func writeParquet[T any](t testing.TB, rows ...T) string {
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

@pytest.mark.parametrize('b', [0, 1])
@pytest.mark.parametrize(
    "a, want",
    [
        (1, LIMIT),
        pytest.param({}, 2, id='c'),
    ],
)
def test_table(a, want, b) -> None:
    assert add(a, b) == pytest.approx(want)

@pytest.mark.parametrize('a', [1])
def test_fixture(a, tmp_path):
    assert add(a, 0) == a

@pytest.mark.asyncio
def test_mark():
    assert add(1, 0) == 1

@pytest.fixture
def one():
    return 1

def test_one(one):
    with pytest.raises(TypeError):
        add(one)

if __name__ == '__main__':
    test_add()
`

// jsonlOf writes the rows of a parquet file as JSONL, with the same columns.
func jsonlOf[T any](t *testing.T, rows ...T) string {
	t.Helper()
	var text strings.Builder
	for _, row := range rows {
		text.WriteString(jsonOf(t, reflect.ValueOf(row)) + "\n")
	}
	return writeFile(t, "set.jsonl", text.String())
}

// jsonOf returns a value as JSON. The name of a field is that of its column.
func jsonOf(t *testing.T, value reflect.Value) string {
	t.Helper()
	var parts []string
	switch {
	case value.Kind() == reflect.Struct:
		for i := range value.NumField() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("parquet"), ",")
			parts = append(parts, fmt.Sprintf("%q:%s", name, jsonOf(t, value.Field(i))))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case value.Kind() == reflect.Slice:
		for i := range value.Len() {
			parts = append(parts, jsonOf(t, value.Index(i)))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	encoded, err := json.Marshal(value.Interface())
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// Both formats give the same problems and the same bad rows.
func TestLoadKodCode(t *testing.T) {
	solution := "def add(a, b):\n    return a + b"
	info := []testInfo{{"add", "def add(a, b):"}, {"sub", "def sub(a, b):"}}
	rows := []kodCodeRow{
		{"instruct", "Prefill", "Prefill_1_I", "Add.", &solution, pytestFile, info, "hard"},
		{"instruct", "Prefill", "Prefill_2_I", "Add.", nil, pytestFile, info, "hard"},
		{"instruct", "Prefill", "Prefill_3_I", "Add.", &solution, "import pytest\n", info, "hard"},
		{"instruct", "Prefill", "Prefill_4_I", "Add.", &solution, pytestFile, nil, "hard"},
	}
	t.Run("parquet", func(t *testing.T) { testLoadKodCode(t, writeParquet(t, rows...), solution) })
	t.Run("JSONL", func(t *testing.T) { testLoadKodCode(t, jsonlOf(t, rows...), solution) })
}

func testLoadKodCode(t *testing.T, path, solution string) {
	t.Helper()
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
			shared + "import pytest\n\n@pytest.mark.parametrize('a', [1, 2])\ndef test_many(a):\n    assert add(a, 0) == a\n",
			shared + "import pytest\n\ndef test_raises():\n    with pytest.raises(TypeError):\n        add(1)\n",
			shared + "@staticmethod\ndef test_limit():  # it's fine\n    assert add(LIMIT['a'], 0) == 1\n\ntest_limit()\n",
			shared + `import pytest

@pytest.mark.parametrize('b', [0, 1])
@pytest.mark.parametrize(
    "a, want",
    [
        (1, LIMIT),
        pytest.param({}, 2, id='c'),
    ],
)
def test_table(a, want, b) -> None:
    assert add(a, b) == pytest.approx(want)
`,
		},
	}}
	if diff := cmp.Diff(want, set); diff != "" {
		t.Errorf("KodCode (-want +got):\n%s", diff)
	}
	wantBad := []string{
		"row 2: field solution is missing",
		"row 3: field test has no test function that the sandbox can run",
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

// smallParquet returns a file with two problems.
func smallParquet(t testing.TB) []byte {
	t.Helper()
	row := ownRow{"a", "made", "Add.", "add", "def add(a, b):\n    return a + b", []string{"assert add(1, 2) == 3", "assert add(0, 0) == 0"}}
	other := row
	other.ID = "b"
	data, err := os.ReadFile(writeParquet(t, row, other))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// footerOnly returns a file that is only a footer, with one empty row group per
// count of rows. The first column is the root.
func footerOnly(t testing.TB, groups []int64, columns ...string) []byte {
	t.Helper()
	footer := format.FileMetaData{Version: 1}
	for _, rows := range groups {
		footer.NumRows += rows
		footer.RowGroups = append(footer.RowGroups, format.RowGroup{NumRows: rows})
	}
	for i, name := range columns {
		element := format.SchemaElement{Name: name}
		if i == 0 {
			element.NumChildren = thrift.New(int32(len(columns) - 1))
		} else {
			element.Type = thrift.New(format.ByteArray)
		}
		footer.Schema = append(footer.Schema, element)
	}
	data, err := thrift.Marshal(new(thrift.CompactProtocol), &footer)
	if err != nil {
		t.Fatal(err)
	}
	file := append([]byte("PAR1"), data...)
	return append(binary.LittleEndian.AppendUint32(file, uint32(len(data))), "PAR1"...)
}

func TestEmptyParquet(t *testing.T) {
	footer := func(groups []int64, columns ...string) string {
		return writeFile(t, "footer.parquet", string(footerOnly(t, groups, columns...)))
	}
	for name, test := range map[string]struct{ path, want string }{
		"no rows":                  {writeParquet[ownRow](t), "the parquet file has no rows"},
		"no columns":               {footer(nil, "root"), "the parquet file has no columns"},
		"no columns but groups":    {footer([]int64{0, 0}, "root"), "the parquet file has no columns"},
		"no columns but rows":      {footer([]int64{3}, "root"), "the parquet file has no columns"},
		"no schema":                {footer([]int64{3}), "not parquet"},
		"no groups":                {footer(nil, "root", "id", "question"), "the parquet file has no rows"},
		"groups without columns":   {footer([]int64{3}, "root", "id", "question"), "not parquet or damaged"},
		"empty":                    {writeFile(t, "empty.parquet", ""), "not parquet"},
		"the first and last bytes": {writeFile(t, "ends.parquet", "PAR1PAR1"), "not parquet"},
	} {
		for _, policy := range []BadRowPolicy{FailOnBadRows, SkipBadRows} {
			_, _, err := ReadAll(t.Context(), test.path, LoadOptions{OnBadRow: policy})
			if err == nil || !strings.Contains(err.Error(), test.path) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s (%s): %v, want %q", name, policy, err, test.want)
			}
		}
	}
}

// A file that is cut anywhere is refused.
func TestTruncatedParquet(t *testing.T) {
	whole := smallParquet(t)
	for size := range whole {
		if checkDamagedParquet(t, whole[:size], fmt.Sprintf("%d bytes", size)) == nil {
			t.Errorf("%d of %d bytes are read", size, len(whole))
		}
	}
}

// Reading a file with a changed byte returns rows or an error in plain words.
func TestDamagedParquet(t *testing.T) {
	whole := smallParquet(t)
	for at := range whole {
		data := bytes.Clone(whole)
		flip := []byte{0x01, 0x80, 0xff}[at%3]
		data[at] ^= flip
		_ = checkDamagedParquet(t, data, fmt.Sprintf("byte %d ^ %#x", at, flip))
	}
}

// checkDamagedParquet returns the error that ends the file.
func checkDamagedParquet(t *testing.T, data []byte, name string) error {
	t.Helper()
	for r, err := range parquetRows(bytes.NewReader(data), int64(len(data))) {
		field := (*FieldError)(nil)
		if err == nil && r.err != nil && !errors.As(r.err, &field) {
			t.Errorf("%s: row %d: %v", name, r.number, r.err)
		}
		if err == nil {
			continue
		}
		if strings.Contains(err.Error(), "runtime error") || !strings.Contains(err.Error(), "parquet") && !errors.Is(err, ErrUnknownSet) {
			t.Errorf("%s: %v", name, err)
		}
		return err
	}
	return nil
}

func FuzzParquet(f *testing.F) {
	whole := smallParquet(f)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("PAR1PAR1"))
	f.Add(footerOnly(f, []int64{1}, "root"))
	for _, path := range []string{writeParquet[ownRow](f), writeParquet(f, kodCodeRow{TestInfo: []testInfo{{"add", ""}}})} {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { _ = checkDamagedParquet(t, data, "input") })
}
