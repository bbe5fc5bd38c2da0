package problems

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const goodLine = `{"id":"a","source":"made","question":"Add.","entry_point":"add","solution":"def add(a, b):\n    return a + b","tests":["assert add(1, 2) == 3"],"difficulty":"easy","buggy":[{"code":"def add(a, b):\n    return a","bug_type":"forgot"}],"note":"of no concern"}`

func writeFile(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	var b bytes.Buffer
	if strings.HasSuffix(name, ".gz") {
		zipped := gzip.NewWriter(&b)
		if _, err := zipped.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := zipped.Close(); err != nil {
			t.Fatal(err)
		}
	} else {
		b.WriteString(text)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fieldOf returns the name of the wrong field, "" if the row is unreadable.
func fieldOf(bad *BadRowError) string {
	if field := (*FieldError)(nil); errors.As(bad, &field) {
		return field.Field
	}
	return ""
}

func TestLoadJSONL(t *testing.T) {
	want := []Problem{{
		ID: "a", Source: "made", Difficulty: "easy", Question: "Add.", EntryPoint: "add",
		Solution: "def add(a, b):\n    return a + b", Tests: []string{"assert add(1, 2) == 3"},
		Buggy: []Buggy{{Code: "def add(a, b):\n    return a", BugType: "forgot"}},
	}}
	for _, file := range []struct{ name, text string }{
		{"set.jsonl", goodLine + "\n\n"}, {"set.jsonl.gz", goodLine + "\n\n"}, {"SET.JSONL", goodLine},
		{"windows.jsonl", string(byteOrderMark) + goodLine + "\r\n"},
	} {
		got, skipped, err := ReadAll(t.Context(), writeFile(t, file.name, file.text), LoadOptions{})
		if err != nil || skipped != 0 {
			t.Fatalf("%s: %d skipped, %v", file.name, skipped, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file.name, diff)
		}
	}
}

func TestBadRows(t *testing.T) {
	lines := []string{
		goodLine,
		`{"id":"b","question":"Q","entry_point":"f","solution":3}`,
		`{"id":"c"`,
		`{"id":"","question":"Q","entry_point":"f","solution":"s"}`,
		`{"id":"d","question":"Q","entry_point":"f","solution":"s","tests":["",""]}`,
		goodLine,
		"{\"id\":\"\xff\"}",
		`{"id":"e","question":"Q","entry_point":"f","solution":"s","buggy":[{}]}`,
		`{"id":"` + strings.Repeat("a", maxLineBytes) + `"}`,
		strings.Replace(goodLine, `"id":"a"`, `"id":"z"`, 1),
	}
	path := writeFile(t, "set.jsonl", strings.Join(lines, "\n"))
	type bad struct {
		Row   int
		Field string
	}
	var got []bad
	set, skipped, err := ReadAll(t.Context(), path, LoadOptions{OnBadRow: SkipBadRows, Report: func(e *BadRowError) {
		if e.File != path {
			t.Errorf("row %d is of file %q, want %q", e.Row, e.File, path)
		}
		got = append(got, bad{e.Row, fieldOf(e)})
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []bad{{2, "solution"}, {3, "id"}, {4, "id"}, {5, "tests[0]"}, {6, "id"}, {7, "id"}, {8, "buggy[0].code"}, {9, ""}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bad rows (-want +got):\n%s", diff)
	}
	if len(set) != 2 || skipped != len(want) {
		t.Errorf("%d problems and %d skipped, want 2 and %d", len(set), skipped, len(want))
	}

	_, _, err = ReadAll(t.Context(), path, LoadOptions{})
	if failed := (*BadRowError)(nil); !errors.As(err, &failed) || failed.Row != 2 {
		t.Errorf("by default the first bad row ends with %v", err)
	}
	if message := err.Error(); !strings.Contains(message, "row 2: field solution is ") {
		t.Errorf("the message %q does not name row and field", message)
	}
}

func TestLoadFailures(t *testing.T) {
	long := `{"id":"` + strings.Repeat("a", maxLineBytes) + `"}`
	for name, test := range map[string]struct{ ref, want string }{
		"missing":     {filepath.Join(t.TempDir(), "none.jsonl"), "no such file"},
		"extension":   {"set.csv", "ending in .jsonl"},
		"built-in":    {"builtin:tests", "builtin:train"},
		"not gzip":    {writeFile(t, "x.jsonl", goodLine), ""},
		"empty":       {writeFile(t, "x.jsonl", "\n"), "it has no problem"},
		"long line":   {writeFile(t, "x.jsonl", long), "row 1: longer than"},
		"not parquet": {writeFile(t, "x.parquet", goodLine), "not parquet"},
	} {
		if name == "not gzip" {
			renamed := test.ref + ".gz"
			if err := os.Rename(test.ref, renamed); err != nil {
				t.Fatal(err)
			}
			test.ref, test.want = renamed, "not gzip"
		}
		_, _, err := ReadAll(t.Context(), test.ref, LoadOptions{})
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), filepath.Base(test.ref)) {
			t.Errorf("%s: %v, want it to name the set and say %q", name, err, test.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := ReadAll(ctx, BuiltinTraining, LoadOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled load ends with %v", err)
	}
}

// The error of a row that is no JSON names the field and the position.
func TestDecodeErrors(t *testing.T) {
	for line, want := range map[string]string{
		`{"id":"c"`:                           "field id has broken JSON at byte 9 of the row: unexpected end of JSON input",
		`{"id":"c","solution":"def`:           "field solution has broken JSON at byte 25 of the row: unexpected end of JSON input",
		`{"id":"c","tests":["a","b" "c"]}`:    "field tests has broken JSON at byte 28 of the row: invalid character '\"' after array element",
		`{"note":{"a":[1]},"id" "c"}`:         "field id has broken JSON at byte 24 of the row: invalid character '\"' after object key",
		`nonsense`:                            "broken JSON at byte 2 of the row: invalid character 'o' in literal null (expecting 'u')",
		`{"id":"c"} {}`:                       "broken JSON at byte 12 of the row: invalid character '{' after top-level value",
		"{\"id\":\"\xff\"}":                   "field id has bytes that are not UTF-8 from byte 8 of the row",
		"{\"id\":\"é\",\"tests\":[\"\xe9\"]}": "field tests has bytes that are not UTF-8 from byte 22 of the row",
		"\x80":                                "bytes that are not UTF-8 from byte 1 of the row",
		`[1]`:                                 "the row is a JSON array, not an object",
		`{"tests":"assert True"}`:             "field tests is a JSON string, not a list",
		`{"buggy":[{"code":1}]}`:              "field buggy.code is a JSON number, not a string",
		`{"buggy":[1]}`:                       "field buggy is a JSON number, not an object",
	} {
		if _, err := decodeJSON([]byte(line)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", line, err, want)
		}
	}
}

// A row as long as the limit is read, with and without a line feed behind it.
func TestRowLimit(t *testing.T) {
	row := func(id string, size int) string {
		text := strings.Replace(goodLine, `"id":"a"`, `"id":"`+id+`"`, 1)
		return text[:len(text)-1] + strings.Repeat(" ", size-len(text)) + "}"
	}
	for size, want := range map[int]string{maxLineBytes - 1: "a b z", maxLineBytes: "a b z", maxLineBytes + 1: "z"} {
		text := row("a", size) + "\n" + row("z", len(goodLine)) + "\n" + row("b", size)
		var ids []string
		for r, err := range jsonlRows(strings.NewReader(text)) {
			if err != nil {
				t.Fatal(err)
			}
			if r.err == nil {
				ids = append(ids, r.problem.ID)
			} else if !errors.Is(r.err, errLongLine) || r.number == 2 {
				t.Errorf("%d bytes: row %d: %v", size, r.number, r.err)
			}
		}
		slices.Sort(ids)
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%d bytes: problems %s, want %s", size, got, want)
		}
	}
}

func TestLoadStopsEarly(t *testing.T) {
	path := writeFile(t, "set.jsonl", goodLine+"\nnonsense")
	for p, err := range Load(t.Context(), path, LoadOptions{}) {
		if err != nil || p.ID != "a" {
			t.Fatalf("first problem %v, %v", p, err)
		}
		break // the bad row is never reached
	}
}

// FuzzJSONL checks that rows are numbered in order and that a line which is no
// problem does not change the lines after it.
func FuzzJSONL(f *testing.F) {
	f.Add([]byte(goodLine + "\n" + goodLine))
	f.Add([]byte("\xef\xbb\xbf\r\n\n" + `{"id":"c"`))
	f.Add([]byte(`{"question_id":"1","question":"q","solution":"s","test":"def test_a():\n pass","test_info":[{"function_name":"f"}]}`))
	f.Add([]byte(`{"question_id":1,"test_info":{"function_name":[null,true]}}`))
	f.Add([]byte("\xff\n[1]\nnull\n{\"id\":\"\x80"))
	f.Fuzz(func(t *testing.T, text []byte) {
		last := 0
		for r, err := range jsonlRows(io.MultiReader(bytes.NewReader(text), strings.NewReader("\n"+goodLine))) {
			if err != nil {
				t.Fatal(err)
			}
			if r.number <= last {
				t.Fatalf("row %d comes after row %d", r.number, last)
			}
			last = r.number
			if end := bytes.Count(text, []byte("\n")) + 2; r.number == end && (r.err != nil || r.problem.ID != "a") {
				t.Errorf("row %d is %q: %v", end, r.problem.ID, r.err)
			}
		}
		if want := bytes.Count(text, []byte("\n")) + 2; last != want {
			t.Errorf("the last row is %d, want %d", last, want)
		}
	})
}

func FuzzDecodeJSON(f *testing.F) {
	f.Add([]byte(goodLine))
	f.Add([]byte(`{"id":"c"`))
	f.Add([]byte(`{"tests":[1]}`))
	f.Add([]byte(`{"buggy":{"code":null}}`))
	f.Add([]byte("{\"id\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		problem, err := decodeJSON(line)
		if err != nil || problem.Validate() != nil {
			return
		}
		encoded, err := json.Marshal(problem)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeJSON(encoded)
		if err != nil {
			t.Fatalf("a valid problem does not read back: %v", err)
		}
		if diff := cmp.Diff(problem, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("a valid problem changes (-want +got):\n%s", diff)
		}
	})
}
