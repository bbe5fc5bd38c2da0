package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"testing"
)

var pageLine = regexp.MustCompile(`(?m)^page +(http://\S+)$`)

// TestDashboardOfAFinishedRun shows a run from its log: its state, a group, its Mistake
// Book, and a run to compare with.
func TestDashboardOfAFinishedRun(t *testing.T) {
	t.Parallel()
	dir := completedRun(t)
	p := start(t, dir, "dashboard", "--run", "r", "--dashboard-address", "127.0.0.1:0")
	var url string
	eventually(t, "the page has an address", func() bool {
		if m := pageLine.FindStringSubmatch(p.stderr.String()); m != nil {
			url = m[1]
		}
		return url != ""
	})
	ask := func(path string, into any) {
		t.Helper()
		response, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK || json.Unmarshal(body, into) != nil {
			t.Fatalf("/%s: %s, %v, %.300s", path, response.Status, err, body)
		}
	}
	var state struct {
		Run, Phase string
		Step       int
		Rewarded   int
		Binding    struct{ Text string }
		Book       struct{ Size int }
	}
	eventually(t, "the page has read the log", func() bool { ask("api/state", &state); return state.Phase == "finished" })
	if state.Run != "r" || state.Step != sharedSteps || state.Rewarded != 3*sharedSteps || state.Binding.Text == "" {
		t.Errorf("the state is %+v", state)
	}
	var group struct {
		Question string
		Answers  []struct{ Code string }
		Updates  []struct{ Role string }
	}
	ask("api/group?name=s000002-q0001", &group)
	if group.Question == "" || len(group.Answers) != 2 || group.Answers[1].Code == "" || len(group.Updates) != 2 {
		t.Errorf("the group is %+v", group)
	}
	var book struct{ Size, Matches int }
	ask("api/book?sort=failed", &book)
	if book.Size != state.Book.Size || book.Matches < book.Size {
		t.Errorf("the book is %+v, the state says %d tests", book, state.Book.Size)
	}
	var other struct{ Series struct{ Step []int } }
	ask("api/run?name=r", &other)
	if len(other.Series.Step) != sharedSteps {
		t.Errorf("the run to compare with has %d points", len(other.Series.Step))
	}
	p.signal(t, os.Interrupt)
	if code := p.wait(t); code != 0 {
		t.Errorf("exit code %d of a dashboard that was interrupted", code)
	}
}
