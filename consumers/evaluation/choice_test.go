package evaluation

import (
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		passed     []int
		behaviours string
		want       int
	}{
		{[]int{0}, "a", 0},
		{[]int{1, 3, 2}, "a b a", 1},           // the most tests
		{[]int{3, 3, 3, 0, 0}, "a b b c c", 1}, // the most answers among the best
		{[]int{3, 3, 0, 0}, "a b b c", 1},      // answers with fewer tests vote, too
		{[]int{0, 2, 2}, "a b c", 1},           // the earliest
		{[]int{2, 5, 5, 5}, "a b c c", 2},
	} {
		if got := Choose(c.passed, strings.Fields(c.behaviours)); got != c.want {
			t.Errorf("%v %s: %d, want %d", c.passed, c.behaviours, got, c.want)
		}
	}
}

// TestSummarizeChosen: the share of correct chosen answers, where every problem has one.
func TestSummarizeChosen(t *testing.T) {
	at := func(n int) *int { return &n }
	results := []Result{
		{ID: "a", Answers: answersOf("xA"), Chosen: at(1)},
		{ID: "b", Answers: answersOf("ax"), Chosen: at(0)}, // passes the base tests only
		{ID: "c", Answers: answersOf("Ax"), Chosen: at(1)},
	}
	if s := Summarize(results, Suites[0]); s.Chosen == nil || *s.Chosen != 2.0/3 {
		t.Errorf("base: %v", s.Chosen)
	}
	plus := Summarize(results, Suites[1])
	if plus.Chosen == nil || *plus.Chosen != 1.0/3 {
		t.Errorf("base+plus: %v", plus.Chosen)
	}
	var table strings.Builder
	if err := PrintSummaries(&table, []Summary{plus}); err != nil || !strings.Contains(table.String(), "MAJORITY  CHOSEN\n") || !strings.HasSuffix(table.String(), " 33.3%\n") {
		t.Errorf("%v\n%s", err, &table)
	}
	results[0].Chosen = nil
	if s := Summarize(results, Suites[0]); s.Chosen != nil {
		t.Errorf("one problem has no chosen answer: %v", *s.Chosen)
	}
	all := Results{}
	if err := all.Add([]byte(`{"id":"a","answers":[{}],"chosen":1}`)); err == nil || !strings.Contains(err.Error(), "chosen is 1, but there are 1 answers") {
		t.Error(err)
	}
}
