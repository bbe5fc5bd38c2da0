package track

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"codea1/consumers/dashboard"
	"codea1/events"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// history returns the events of a run of two steps with an evaluation before and after.
func history() []*events.Event {
	at := noon
	event := func(group string, p events.Payload) *events.Event {
		at = at.Add(time.Second)
		return events.New("r1", group, "test-0", at, p)
	}
	reward := func(step, slot int, code float64, deltas ...events.BookDelta) *events.Event {
		plan := events.Plan{Purpose: events.PurposeTrain, Step: step, Slot: slot, Groups: 2, Answers: 1, Suites: 1}
		return event(plan.GroupID(), &events.GroupRewarded{
			Plan: plan, ProblemID: "p", Recipe: "a1", CodeVersion: step - 1, TestVersion: 0, Deltas: deltas,
			Code: []events.AnswerReward{{Reward: code, Loads: true}},
			Test: [][]events.SuiteReward{{{Reward: 0.25, Valid: 3, Invalid: 1, PassNew: 0.5, PassHist: 1}}},
		})
	}
	update := func(role events.Role, step int, loss float64) *events.Event {
		return event(fmt.Sprintf("%s-v%06d", role, step), &events.PolicyUpdated{
			Role: role, Version: step, Step: step, Metrics: events.PolicyMetrics{Loss: loss, KL: 0.001, RewardMean: 0.5, Sequences: 4, Tokens: 10},
		})
	}
	score := func(tag string, step int) *events.Event {
		plan := events.Plan{Purpose: events.PurposeEval, Tag: tag, Step: step, Groups: 1, Answers: 4}
		return event(plan.GroupID(), &events.EvalScored{Plan: plan, ProblemID: "h", Correct: []bool{true, false, true, true}})
	}
	return []*events.Event{
		event("start-0001", &events.RunStarted{Attempt: 1, Steps: 2, Config: "seed: 1\n../../escape: 2\nUPPER: 3\n"}),
		score("before", 0),
		reward(1, 0, 1, events.BookDelta{Call: "f(1)", Expected: "1", Change: 1}), reward(1, 1, 0.5),
		update(events.RoleCode, 1, 0.125), update(events.RoleTest, 1, math.NaN()),
		reward(2, 0, 1),
		event("s000002-q0001", &events.GroupDropped{Purpose: events.PurposeTrain, Step: 2, Slot: 1, Groups: 2, Stage: "execution", Reason: events.DropRetries}),
		update(events.RoleTest, 2, 0.5), update(events.RoleCode, 2, 0.25),
		score("after", 2),
		event("end-0001", &events.RunFinished{Attempt: 1, Steps: 2, Reason: events.RunCompleted}),
	}
}

// tracked writes the history for tools and returns the error of Close.
func tracked(t *testing.T, dir, python string, tools ...string) error {
	t.Helper()
	tracker, err := New(tools, dir, python, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range history() {
		tracker.Apply(e)
		tracker.Flush()
	}
	return tracker.Close()
}

// columns returns the figures in a CSV file: a list of step and value for each name.
func columns(t *testing.T, dir string) map[string][][2]float64 {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "r1.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][][2]float64{}
	for _, line := range lines[1:] {
		step, err := strconv.ParseFloat(line[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range line[2:] {
			if text == "" {
				continue
			}
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			all[lines[0][i+2]] = append(all[lines[0][i+2]], [2]float64{step, value})
		}
	}
	return all
}

func TestRows(t *testing.T) {
	dir := t.TempDir()
	if err := tracked(t, dir, "", "csv"); err != nil {
		t.Fatal(err)
	}
	have := columns(t, dir)
	want := map[string][][2]float64{
		"heldout/avg": {{0, 0.75}, {2, 0.75}},
		"code/loss":   {{1, 0.125}, {2, 0.25}}, "test/loss": {{2, 0.5}}, "test/version": {{1, 1}, {2, 2}}, "code/response_tokens": {{1, 2.5}, {2, 2.5}},
		"code/staleness": {{1, 0}, {2, 0}}, "test/staleness": {{1, 0}, {2, 1}},
		"groups/rewarded": {{1, 2}, {2, 1}}, "groups/dropped": {{1, 0}, {2, 1}},
		"tests/pass_new": {{1, 0.5}, {2, 0.5}}, "tests/pass_historical": {{1, 1}, {2, 1}}, "tests/kept": {{1, 3}, {2, 3}},
		"book/size": {{1, 1}, {2, 1}}, "book/entered": {{1, 1}, {2, 0}}, "book/left": {{1, 0}, {2, 0}},
	}
	for name, points := range want {
		if !slices.Equal(have[name], points) {
			t.Errorf("%s: have %v, want %v", name, have[name], points)
		}
	}
	names := map[string]bool{}
	for name := range dashboard.RowFigures() {
		names[name] = true
	}
	for name := range have {
		if !names[name] {
			t.Errorf("%s is not in the list of figures", name)
		}
	}
}

// The second start replaces the files of the first one, and nothing else.
func TestFilesAreReplaced(t *testing.T) {
	dir := t.TempDir()
	files := func() map[string]string {
		all := map[string]string{}
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			name, _ := strings.CutPrefix(path, dir)
			if before, _, found := strings.Cut(name, ".tfevents."); found && strings.HasSuffix(name, eventFileSuffix) {
				name = before // its name has the time
			}
			all[name] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if err := tracked(t, dir, "", "tensorboard", "csv", "mlflow"); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "tensorboard", "r1", "events.out.tfevents.1.other")
	if err := os.WriteFile(foreign, []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	first := files()
	if err := tracked(t, dir, "", "tensorboard", "csv", "mlflow"); err != nil {
		t.Fatal(err)
	}
	second := files()
	for name := range second {
		if first[name] != second[name] {
			t.Errorf("%s differs after the second start", name)
		}
	}
	if len(first) != len(second) || len(first) < 20 {
		t.Errorf("%d files, %d after the second start", len(first), len(second))
	}
}

// A tool that fails at its start or later leaves the others whole.
func TestFailedTool(t *testing.T) {
	dir := t.TempDir()
	dies := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(dies, []byte("#!/bin/sh\necho ready\nread line\necho 'no space' >&2\nexit 7\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for python, want := range map[string]string{filepath.Join(dir, "none"): "--wandb-python names another Python", dies: "exit status 7: no space"} {
		err := tracked(t, dir, python, "wandb", "csv")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "wandb: ") {
			t.Errorf("%s: %v", python, err)
		}
		if n := len(columns(t, dir)["groups/rewarded"]); n != 2 {
			t.Errorf("%s: the other tool has %d steps, want 2", python, n)
		}
	}
}

func TestTwoTrackersOfOneRun(t *testing.T) {
	dir := t.TempDir()
	first, err := New([]string{"csv"}, dir, "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New([]string{"csv"}, dir, "", slog.New(slog.DiscardHandler)); !errors.Is(err, ErrInUse) {
		t.Errorf("a second tracker: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tracked(t, dir, "", "csv"); err != nil {
		t.Errorf("after the first one: %v", err)
	}
}

func TestUnknownTool(t *testing.T) {
	if tools, err := parseTools("csv, mlflow,csv"); err != nil || !slices.Equal(tools, []string{"csv", "mlflow"}) {
		t.Errorf("%v, %v", tools, err)
	}
	for _, bad := range []error{(&Flags{Track: "csv,comet"}).Validate(), (&Command{To: "comet"}).Validate()} {
		if bad == nil || !strings.Contains(bad.Error(), `"comet" is no tool`) {
			t.Errorf("%v", bad)
		}
	}
}

// The readers of TensorBoard, MLflow and W&B themselves find the figures of the CSV
// file. CODEA1_TEST_TRACK_PYTHON has their packages.
func TestReadersOfTheTools(t *testing.T) {
	python := os.Getenv("CODEA1_TEST_TRACK_PYTHON")
	if python == "" {
		t.Skip("CODEA1_TEST_TRACK_PYTHON names no Python with tensorboard and wandb, and perhaps mlflow-skinny")
	}
	dir := t.TempDir()
	if err := tracked(t, dir, python, "tensorboard", "csv", "mlflow", "wandb"); err != nil {
		t.Fatal(err)
	}
	read := exec.Command(python, "testdata/read.py", dir, "r1")
	var stderr bytes.Buffer
	read.Stderr = &stderr
	out, err := read.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	var have map[string]map[string][][2]float64
	if err := json.Unmarshal(out, &have); err != nil {
		t.Fatal(err)
	}
	want := columns(t, dir)
	for _, tool := range []string{"tensorboard", "mlflow", "wandb"} {
		if tool == "mlflow" && have[tool] == nil {
			t.Logf("%s has no MLflow", python)
			continue
		}
		if len(have[tool]) != len(want) {
			t.Errorf("%s has %d figures, want %d", tool, len(have[tool]), len(want))
		}
		for name, points := range want {
			near := func(a, b [2]float64) bool { return a[0] == b[0] && math.Abs(a[1]-b[1]) <= 1e-6*math.Abs(b[1]) } // TensorBoard has float32
			if !slices.EqualFunc(have[tool][name], points, near) {
				t.Errorf("%s: %s is %v, want %v", tool, name, have[tool][name], points)
			}
		}
	}
}
