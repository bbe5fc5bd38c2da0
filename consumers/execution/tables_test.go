package execution

import (
	"os"
	"strings"
	"testing"

	"codea1/consumers/execution/literal"
	"codea1/events"
)

// readTable returns the cells of the first table below a line of TESTS.md.
func readTable(t *testing.T, below string) [][]string {
	t.Helper()
	text, err := os.ReadFile("TESTS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), below)
	if !found {
		t.Fatalf("TESTS.md has no line %q", below)
	}
	var rows [][]string
	for line := range strings.Lines(after) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		var cells []string
		for _, cell := range strings.Split(strings.Trim(line, "|"), " | ") {
			cell = strings.TrimSpace(cell)
			cells = append(cells, strings.ReplaceAll(strings.Trim(cell, "`"), " ⏎", "\n"))
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		t.Fatalf("TESTS.md has no table below %q", below)
	}
	return rows[2:] // without the head
}

// TestTables runs the rows of TESTS.md.
func TestTables(t *testing.T) {
	t.Parallel()
	x := openExecutor(t, quick)
	t.Run("suites", func(t *testing.T) {
		rows := readTable(t, "*checked: the entry point is `f`; the second column")
		var texts []string
		for _, row := range rows {
			texts = append(texts, row[0])
		}
		parsed, err := x.parseSuites(t.Context(), "f", texts, false, x.config.JobTimeout)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range rows {
			last := parsed[i][len(parsed[i])-1]
			got := "no: " + last.Reason
			if last.Reason == "" {
				got = last.Call + " == " + literal.Text(last.stated)
			}
			reason, refused := strings.CutPrefix(row[1], "no: ")
			if refused && !strings.Contains(last.Reason, reason) || !refused && got != row[1] {
				t.Errorf("%s: got %s, want %s", row[0], got, row[1])
			}
		}
	})
	t.Run("status", func(t *testing.T) {
		const below = "*checked: the ground truth is `"
		rows := readTable(t, below)
		text, err := os.ReadFile("TESTS.md")
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(text), below)
		truth, _, _ := strings.Cut(after, "`")
		var suites []string
		for _, row := range rows {
			suites = append(suites, row[0])
		}
		out, err := x.Execute(t.Context(), sampled(truth, nil, []string{truth}, [][]string{suites}))
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range rows {
			got := out.Answers[0].Suites[i].Tests[0]
			if string(got.Status) != row[1] || got.Wrong != (row[2] == "yes") {
				t.Errorf("%s: got %s, wrong %t", row[0], got.Status, got.Wrong)
			}
			if (got.Verdict == events.VerdictPass) != (got.Status == events.StatusKept) {
				t.Errorf("%s: the ground truth does not pass what is kept: %s %s", row[0], got.Verdict, got.Detail)
			}
		}
	})
	t.Run("golden", func(t *testing.T) {
		for _, row := range readTable(t, "*checked: the entry point is `f`*") {
			got, err := x.Check(t.Context(), row[0], "f", []string{row[1]})
			if err != nil {
				t.Fatal(err)
			}
			if string(got[0].Verdict) != row[2] || got[0].InProcess != (row[3] == "yes") {
				t.Errorf("%s: %s: got %+v, want %s, in process: %s", row[0], row[1], got[0], row[2], row[3])
			}
		}
	})
}
