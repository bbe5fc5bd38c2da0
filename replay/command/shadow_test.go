package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/export"
	"codea1/replay/internal/replaytest"
	"codea1/replay/query"
)

// pairs returns the rewards of each group in lines of JSON, as they are written, and
// the last line.
func pairs(t *testing.T, lines string) (groups []string, last string) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var g struct {
			Group, Problem string
			Before, After  json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &g); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if g.Group != "" {
			groups = append(groups, fmt.Sprint(g.Group, g.Problem, string(g.Before), string(g.After)))
		}
		last = line
	}
	return groups, last
}

// A shadow prints the output of rescore, and compares the same.
func TestShadowIsRescore(t *testing.T) {
	t.Parallel()
	run, l := eventlogtest.Run(t, replaytest.Tell(t))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	rescored, err := execute(t, "replay", "rescore", run, "--reward", "share", "--alpha", "0.25", "--groups", "--json")
	if err != nil {
		t.Fatal(err)
	}
	shadowed, err := execute(t, "shadow", run, "--reward", "share", "--alpha", "0.25", "--json")
	if err != nil {
		t.Fatal(err)
	}
	want, report := pairs(t, rescored)
	got, last := pairs(t, shadowed)
	if diff := cmp.Diff(want, got); diff != "" || len(got) != replaytest.Steps*replaytest.Groups {
		t.Errorf("%d groups (-rescore +shadow):\n%s", len(got), diff)
	}
	if named := strings.Replace(report, "{", `{"recipe":"share, alpha 0.25",`, 1); named != last {
		t.Errorf("rescore: %s\nshadow:  %s", named, last)
	}
	out, err := execute(t, "shadow", run, "--reward", "loads", "--reward", "share")
	if err != nil || strings.Count(out, "\nstep ")+strings.Count(out, "step 1  loads, alpha 0.5  ") != 2*replaytest.Steps || !strings.Contains(out, "4 groups under share, alpha 0.5") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := execute(t, "shadow", run, "--reward", "none"); err == nil || !strings.Contains(err.Error(), "unknown recipe") {
		t.Errorf("an unknown recipe: %v", err)
	}
	if out, err := execute(t, "shadow", run, "--reward", "golden"); err != nil || !strings.Contains(out, "4 groups under golden") {
		t.Errorf("%v\n%s", err, out)
	}
}

// newShadow returns a shadow that prints lines of JSON.
func newShadow(t *testing.T, out *bytes.Buffer) *shadow {
	t.Helper()
	score, err := replaytest.Recipes{}.Recipe("share", 0.5)
	if err != nil {
		t.Fatal(err)
	}
	return &shadow{
		recipes: []shadowRecipe{{name: "share", score: score, all: query.NewComparison()}},
		out:     out, lines: export.NewLines(out), logger: slog.New(slog.DiscardHandler),
		groups: map[string]*shadowedGroup{}, steps: map[int]*shadowedStep{},
	}
}

func storyEvents(t *testing.T) (all []*events.Event) {
	t.Helper()
	for _, m := range replaytest.Tell(t) {
		e, err := m.Decode()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// A bus without an order across types, and one that repeats events, change nothing. A
// group with the verdicts of another plan is left out, and so is one without its first
// event.
func TestShadowOfUnorderedEvents(t *testing.T) {
	t.Parallel()
	ordered := storyEvents(t)
	shadowOf := func(all []*events.Event) ([]string, int) {
		var out bytes.Buffer
		s := newShadow(t, &out)
		for _, e := range all {
			if err := s.add(e); err != nil {
				t.Fatal(err)
			}
		}
		groups, _ := pairs(t, out.String())
		slices.Sort(groups)
		return groups, int(s.recipes[0].all.Report().Groups)
	}
	want, n := shadowOf(ordered)
	if n != replaytest.Steps*replaytest.Groups {
		t.Fatalf("%d groups", n)
	}
	reversed := slices.Clone(ordered)
	slices.Reverse(reversed)
	for name, all := range map[string][]*events.Event{"reversed": reversed, "repeated": slices.Concat(ordered, reversed, ordered)} {
		if got, _ := shadowOf(all); !slices.Equal(got, want) {
			t.Errorf("%s: %s", name, cmp.Diff(want, got))
		}
	}
	foreign := slices.Clone(ordered)
	for i, e := range foreign {
		if p, ok := e.Payload.(*events.GroupRewarded); ok {
			other, wrong := *e, *p
			wrong.Plan.Answers, wrong.Code, wrong.Test = 3, append(slices.Clone(p.Code), p.Code...)[:3], append(slices.Clone(p.Test), p.Test...)[:3]
			other.Payload = &wrong
			foreign[i] = &other
			break
		}
	}
	if got, _ := shadowOf(foreign); len(got) != n-1 {
		t.Errorf("%d groups, one of them rewarded under another plan", len(got))
	}
	first := slices.IndexFunc(ordered, func(e *events.Event) bool { return e.Type == events.TypeGroupRewarded })
	if got, _ := shadowOf(ordered[first:]); len(got) != n-1 {
		t.Errorf("%d groups, one of them without its verdicts", len(got))
	}
}

// A shadow holds a bounded number of groups and steps that do not end.
func TestShadowIsBounded(t *testing.T) {
	t.Parallel()
	s := newShadow(t, new(bytes.Buffer))
	s.lines = nil
	for step := range 2 * maxSteps {
		if err := s.groupEnded(step, 2, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 * maxShadowed {
		s.group(fmt.Sprint(i))
	}
	if len(s.steps) != maxSteps || len(s.groups) != maxShadowed || len(s.order) != maxShadowed || s.groups[fmt.Sprint(2*maxShadowed-1)] == nil {
		t.Errorf("%d steps, %d groups, %d in order", len(s.steps), len(s.groups), len(s.order))
	}
}
