package dashboard

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
)

// reported returns the state of a run with texts that contain HTML.
func reported(t testing.TB) *Follower {
	t.Helper()
	s, f := &script{at: noon}, NewFollower()
	started := s.started(1, 9)
	started.Payload.(*events.RunStarted).Config = "seed: 7 # </pre><script>evil()</script>\n"
	applyTo(t, f, started)
	score := func(tag string, step int, correct string) {
		for slot, right := range correct {
			s.at = s.at.Add(time.Second)
			applyTo(t, f, s.scored(tag, step, slot, len(correct), events.EvalScored{
				Correct: []bool{right != '0', right > '1', right > '2', right > '3'}, Suites: 4, Wanted: 8, Stated: 8, Right: 2 + step/2, Defective: 2, Found: 1,
			}))
		}
	}
	score("before", 0, "012")
	for step := 1; step <= 9; step++ {
		s.at = s.at.Add(2 * time.Second)
		measured := s.updated(events.RoleTest, step)
		measured.Payload.(*events.PolicyUpdated).Metrics.Mismatch = &events.Mismatch{KL: 0.01}
		applyTo(t, f,
			s.rewarded(step, 0, 1, 0.1*float64(step), 0.3, events.BookDelta{Call: fmt.Sprintf("f(%d)", step), Expected: "1", Change: 1}),
			s.updated(events.RoleCode, step), measured)
		applyTo(t, f, s.failing(step, 1, fmt.Sprintf("p%d", step), executed{"2", "2", "2"}, executed{"4", "4", "5"})...)
	}
	evil := s.dropped(events.PurposeTrain, "s000009-q0003", 9, 3, 4, events.DropTooLarge)
	evil.Payload.(*events.GroupDropped).Detail = `<img src=x onerror="evil()">`
	applyTo(t, f, evil)
	score("after", 9, "344")
	applyTo(t, f, s.finished(9, events.RunCompleted))
	return f
}

func writeReport(t testing.TB, f *Follower) string {
	t.Helper()
	var b bytes.Buffer
	var err error
	f.View(func(s *State) { err = WriteReport(&b, s) })
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestReportInABrowser opens a report from disk.
func TestReportInABrowser(t *testing.T) {
	browser := startChrome(t)
	path := filepath.Join(t.TempDir(), "report.html")
	var err error
	reported(t).View(func(s *State) { err = SaveReport(path, s) })
	if err != nil {
		t.Fatal(err)
	}
	browser.open("file://" + path)
	browser.until(`document.querySelectorAll('.chart canvas').length === 19`)
	browser.until(fmt.Sprintf(drawn, "reward", "[0x25, 0x63, 0xeb]") + " > 100")
	for id, want := range map[string][2]int{ // pixels of the first colour, of the second
		"reward": {100, 100}, "heldout": {100, 0}, "pass": {100, 100}, "tests": {100, 0}, "changes": {100, 100},
		"book": {100, 0}, "entropy": {0, 100}, "kl": {0, 100}, "grad": {0, 100}, "mismatch": {0, 100}, "dropped": {50, 0}, "lr": {0, 100}, "finding": {100, 100},
	} {
		for i, colour := range []string{"[0x25, 0x63, 0xeb]", "[0xc2, 0x41, 0x0c]"} {
			if n, _ := browser.eval(fmt.Sprintf(drawn, id, colour)).(float64); int(n) < want[i] {
				t.Errorf("chart %s has %v pixels of colour %d, want %d or more", id, n, i+1, want[i])
			}
		}
	}
	says := func(wants map[string]string) {
		t.Helper()
		for selector, want := range wants {
			if got := browser.eval(fmt.Sprintf(`(document.querySelector(%q)?.textContent ?? "nothing")`, selector)); got != want {
				t.Errorf("%s: the report says %q, want %q", selector, got, want)
			}
		}
	}
	says(map[string]string{
		"#run":                                   "r1",
		"#progress_text":                         "completed after 9 of 9 steps",
		"#compared tbody tr":                     "Code LLM avg@425.0%91.7%+66.7 points+50.0 to +75.0",
		"#examples tbody tr":                     "1s000001-q0001p1assert f(1) == 4returned 51 of 2",
		"[data-chart=heldout] .u-legend tr td":   "9",
		"[data-chart=heldout] tr:nth-child(2)":   "mean0.917",
		"[data-chart=reward] tr:nth-child(2)":    "Code LLM0.600",
		"[data-chart=grad] tr:nth-child(2) > td": "0.500",
	})
	if n := browser.eval(`document.querySelectorAll('#examples tbody tr').length`); n != 5.0 {
		t.Errorf("%v examples, want 5", n)
	}
	view := func(hash, until string) {
		t.Helper()
		browser.eval(fmt.Sprintf("location.hash = %q", hash))
		browser.until(until)
	}
	view("#/run", `document.querySelector('#drops tbody').rows.length === 1`)
	says(map[string]string{"#config": "seed: 7 # </pre><script>evil()</script>\n", "#facts tr:nth-child(7) td:last-child": "test"})
	if got, _ := browser.eval(`document.querySelector('#drops tbody').textContent`).(string); !strings.HasSuffix(got, `s000009-q0003executiontoo_large<img src=x onerror="evil()">`) {
		t.Errorf("the report says %q", got)
	}
	view("#/book?q=f(3)", `document.querySelectorAll('#book_tests .test').length === 1`)
	view("#/group/s000001-q0001", `document.querySelectorAll('.answer').length === 2`)
	says(map[string]string{
		".question":           "Double x & <b>return</b> it.",
		"#answer1 .code":      `def f(x): return x * x  # </script><img src=x onerror="evil()"> 1`,
		".matrix tbody tr+tr": "20.50✓✗",
	})
	view("#/group/s000002-q0000", `document.querySelector('#group_body .panel')?.textContent.includes('codea1 dashboard --run r1')`)
	view("#/training", `!document.getElementById('training').hidden`)
	if n := browser.eval(`document.querySelectorAll('img, iframe, link, [src], [href]:not([href^="#"])').length`); n != 0.0 {
		t.Errorf("%v elements that load something", n)
	}

	browser.prefer("dark")
	browser.until(`getComputedStyle(document.body).backgroundColor === 'rgb(15, 18, 21)'`)
	browser.until(fmt.Sprintf(drawn, "reward", "[0x60, 0xa5, 0xfa]") + " > 100")

	problems, requests := browser.seen()
	for _, p := range problems {
		t.Errorf("the report had a problem: %s", p)
	}
	for _, url := range requests {
		if url != "file://"+path && url != "about:blank" {
			t.Errorf("the report asked for %s", url)
		}
	}
	if len(requests) == 0 {
		t.Error("no request was recorded")
	}
}

// TestReportOfNothing writes the report of a run that was stopped before its
// first step.
func TestReportOfNothing(t *testing.T) {
	f := NewFollower()
	for _, want := range []string{"No event of the run was received", "Run r1: 0 of 9 steps"} {
		text := writeReport(t, f)
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the report", want)
		}
		for _, absent := range []string{"NaN", "Infinity"} {
			if body := withoutScripts(text); strings.Contains(body, absent) {
				t.Errorf("%s in the report of an empty run", absent)
			}
		}
		applyTo(t, f, (&script{at: noon}).started(1, 9))
	}
}

var inlineElement = regexp.MustCompile(`(?s)<(script|style)>.*?</(script|style)>`)

func withoutScripts(page string) string { return inlineElement.ReplaceAllString(page, "") }

func TestReportLoadsNothing(t *testing.T) {
	f := reported(t)
	text := writeReport(t, f)
	if again := writeReport(t, f); again != text {
		t.Error("two reports of one state differ")
	}
	body := withoutScripts(text)
	for _, word := range []string{"http:", "https:", "<link", "<img", "url(", "evil()</script>"} {
		if strings.Contains(body, word) {
			t.Errorf("%s in the report", word)
		}
	}
	if !strings.Contains(body, "default-src 'none'") {
		t.Error("the content security policy allows a browser to load more")
	}
	if len(text) > 256<<10 {
		t.Errorf("a report of %d bytes", len(text))
	}
}

func TestSaveReportReplacesOrLeaves(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.html")
	for range 2 {
		if err := SaveReport(path, NewState()); err != nil {
			t.Fatal(err)
		}
	}
	if err := SaveReport(filepath.Join(dir, "missing", "report.html"), NewState()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("have %v", err)
	}
	// A rename cannot replace a directory that is not empty.
	taken := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := SaveReport(taken, NewState()); err == nil || !strings.Contains(err.Error(), taken) {
		t.Errorf("have %v, want the path named", err)
	}
	var names []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"report.html", "taken"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestWriteReportReportsABrokenOutput(t *testing.T) {
	broken := errors.New("no space left")
	if err := WriteReport(full{broken}, NewState()); !errors.Is(err, broken) {
		t.Errorf("have %v, want %v", err, broken)
	}
}
