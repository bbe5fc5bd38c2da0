package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/replay/eventlog"
)

// history is what a run came to, from its event log alone.
type history struct {
	Weights map[string]string                // SHA-256 of model.safetensors, by role and version
	Trained map[string][]string              // groups consumed, by role and version
	Rewards map[string]*events.GroupRewarded // by group
	Scores  map[string]*events.EvalScored    // by group
	Book    map[string][]string              // tests of the Mistake Book, by problem

	events   int
	started  []*events.RunStarted
	finished []*events.RunFinished
}

// read checks the log of a run from end to end, and everything in it that must
// have happened once.
func read(t *testing.T, run string, steps int) *history {
	t.Helper()
	log, err := eventlog.Open(rundir.Log(run), eventlog.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.Verify(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	last, _ := log.Last()
	rebuilt, err := log.BookAt(t.Context(), last)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(rebuilt.Encode(), log.Book().Encode()) {
		t.Error("the Mistake Book is not the one that the events make")
	}
	h := &history{
		Weights: map[string]string{}, Trained: map[string][]string{}, Book: map[string][]string{},
		Rewards: map[string]*events.GroupRewarded{}, Scores: map[string]*events.EvalScored{},
	}
	for _, id := range log.Book().Problems() {
		for _, e := range log.Book().Tests(id) {
			h.Book[id] = append(h.Book[id], fmt.Sprintf("%s == %s (%d)", e.Call, e.Expected, e.Count))
		}
	}
	posed := map[string]events.Plan{}
	ends := map[string]int{}
	for record, err := range log.Read(t.Context(), eventlog.ReadOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := record.Decode()
		if err != nil {
			t.Fatal(err)
		}
		h.events++
		switch p := e.Payload.(type) {
		case *events.RunStarted:
			h.started = append(h.started, p)
		case *events.RunFinished:
			h.finished = append(h.finished, p)
		case *events.ProblemPosed:
			posed[e.Group] = p.Plan
		case *events.GroupRewarded:
			h.Rewards[e.Group] = p
			ends[e.Group]++
		case *events.EvalScored:
			h.Scores[e.Group] = p
			ends[e.Group]++
		case *events.GroupDropped:
			t.Errorf("group %s was dropped: %s, %s", e.Group, p.Reason, p.Detail)
			ends[e.Group]++
		case *events.PolicyUpdated:
			name := version(p.Role, p.Version)
			if _, twice := h.Weights[name]; twice {
				t.Errorf("%s was trained twice", name)
			}
			h.Weights[name], h.Trained[name] = p.Checkpoint.SHA256, p.Groups
		}
	}
	groups := map[int][]string{} // of the training steps, in slot order
	for _, id := range slices.SortedFunc(maps.Keys(posed), func(a, b string) int { return cmp.Compare(posed[a].Slot, posed[b].Slot) }) {
		if ends[id] != 1 {
			t.Errorf("group %s was rewarded or dropped %d times", id, ends[id])
		}
		if plan := posed[id]; plan.Purpose == events.PurposeTrain {
			groups[plan.Step] = append(groups[plan.Step], id)
		}
	}
	for id := range ends {
		if _, ok := posed[id]; !ok {
			t.Errorf("group %s came from nowhere", id)
		}
	}
	if len(groups) != steps || len(h.Weights) != 2*steps {
		t.Errorf("%d steps posed and %d versions made, want %d and %d", len(groups), len(h.Weights), steps, 2*steps)
	}
	for step, ids := range groups {
		for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
			if name := version(role, step); !slices.Equal(h.Trained[name], ids) {
				t.Errorf("%s was trained on %v, step %d posed %v", name, h.Trained[name], step, ids)
			}
		}
	}
	return h
}

func version(role events.Role, n int) string { return fmt.Sprintf("%s v%d", role, n) }

// ended returns why the last attempt of a run ended.
func (h *history) ended() string {
	if len(h.finished) == 0 {
		return ""
	}
	return h.finished[len(h.finished)-1].Reason
}

func runPath(dir, name string) string { return filepath.Join(dir, rundir.Default, name) }
