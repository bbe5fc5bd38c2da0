package experiment

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codea1/consumers/evaluation"
	"codea1/events/files"
	"codea1/events/rundir"
)

// Evaluated is an evaluation of a run. One without figures has begun.
type Evaluated struct {
	Name          string            `json:"name"`
	Configuration map[string]string `json:"configuration"`
	Content       string            `json:"benchmark_sha256"`
	Before        []Value           `json:"before,omitempty"` // training; only of one configuration's runs
	After         []Value           `json:"after,omitempty"`
}

// Value is a figure of an evaluation, a share.
type Value struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// differences says why an evaluation is not that of the experiment; empty if it is.
func (was *Evaluated) differences(e *Evaluation, content string) string {
	var all []string
	now := e.configuration()
	keys := maps.Clone(now)
	maps.Copy(keys, was.Configuration)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if a, b := was.Configuration[key], now[key]; a != b {
			all = append(all, fmt.Sprintf("%s was %s and is %s", key, cmp.Or(a, "not set"), cmp.Or(b, "not set")))
		}
	}
	if was.Content != content {
		all = append(all, "the content of its benchmark was another")
	}
	return strings.Join(all, "; ")
}

// task is an evaluation of one run.
type task struct {
	*Evaluation
	content string     // SHA-256 of the benchmark
	before  bool       // training, too
	made    *Evaluated // nil: not begun
}

// complete reports whether the figures are known.
func (t *task) complete() bool {
	return t.made != nil && len(t.made.After) > 0 && (!t.before || len(t.made.Before) > 0)
}

// assign gives the runs their evaluations. Those before training are made with the runs
// of the baseline or, if it has no Test LLM to evaluate, of the first configuration with
// one.
func assign(ctx context.Context, m *Matrix, runs []*Run, host Host) error {
	for i := range m.Evaluations {
		e := &m.Evaluations[i]
		content, err := contentOf(ctx, host, e.Benchmark)
		if err != nil {
			return fmt.Errorf("%s: %w", e.benchmarkPlace, err)
		}
		var of []*Run
		for _, r := range runs {
			with, err := host.HasTest(r.config)
			if err != nil {
				return r.Arm.Wrong(err)
			}
			if with || !e.needsTest() {
				of = append(of, r)
			}
		}
		start := slices.IndexFunc(of, func(r *Run) bool { return r.Arm.Name == m.Baseline })
		for _, r := range of {
			r.tasks = append(r.tasks, &task{Evaluation: e, content: content, before: r.Arm == of[max(0, start)].Arm})
		}
	}
	return nil
}

// contentOf returns the SHA-256 of a benchmark: of a file or, if there is none with this
// name, of a built-in problem set.
func contentOf(ctx context.Context, host Host, benchmark string) (string, error) {
	file, err := files.Open(benchmark)
	if errors.Is(err, fs.ErrNotExist) {
		return host.Content(ctx, benchmark)
	}
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	return hex.EncodeToString(sum.Sum(nil)), errors.Join(err, file.Close())
}

// evaluations returns what is known of the run's evaluations.
func (r *Run) evaluations() []Evaluated {
	var all []Evaluated
	for _, t := range r.tasks {
		if t.made == nil || len(t.made.After) == 0 {
			continue
		}
		made := *t.made
		if !t.before { // the file had another baseline when it was made
			made.Before = nil
		}
		all = append(all, made)
	}
	return all
}

// adoptEvaluations takes the evaluations of a recorded run.
func (r *Run) adoptEvaluations(recorded []Evaluated) error {
	for i := range recorded {
		was := &recorded[i]
		j := slices.IndexFunc(r.tasks, func(t *task) bool { return t.Name == was.Name })
		if j < 0 {
			return fmt.Errorf("the evaluation %s, which the experiment does not have: put it back, or take it out of the file", was.Name)
		}
		if differ := was.differences(r.tasks[j].Evaluation, r.tasks[j].content); differ != "" {
			return fmt.Errorf("the evaluation %s, but %s: undo the change, give the evaluation another name, or take it out of the file", was.Name, differ)
		}
		r.tasks[j].made = was
	}
	return nil
}

// inExperiment returns a path below the directory of the experiment.
func (r *Run) inExperiment(parts ...string) string {
	return filepath.Join(append([]string{filepath.Dir(filepath.Dir(r.dir))}, parts...)...)
}

const evaluationsDir = "evaluations"

// evaluationFile returns the file with the figures of an evaluation.
func (r *Run) evaluationFile(t *task) string {
	return r.inExperiment(evaluationsDir, r.Name, t.Name+".json")
}

// readEvaluations takes the evaluations of the run that were made or begun here.
func (r *Run) readEvaluations() error {
	for _, t := range r.tasks {
		if t.complete() {
			continue
		}
		path := r.evaluationFile(t)
		text, err := readFile(path, maxRecordBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		made := new(Evaluated)
		if err := json.Unmarshal(text, made); err != nil {
			return fmt.Errorf("%s: it is no file of an evaluation: %w", path, err)
		}
		if differ := made.differences(t.Evaluation, t.content); differ != "" {
			return fmt.Errorf("its evaluation %s has begun, but %s: undo the change, or give the evaluation another name", t.Name, differ)
		}
		t.made = made
	}
	return nil
}

// evaluationsLeft counts the evaluations of the run that are not made.
func (r *Run) evaluationsLeft() int {
	n := 0
	for _, t := range r.tasks {
		if !t.complete() {
			n++
		}
	}
	return n
}

// evaluate makes the evaluations of a completed run that are left.
func (r *Run) evaluate(ctx context.Context, output *os.File, say func(format string, args ...any)) error {
	for _, t := range r.tasks {
		if t.complete() {
			continue
		}
		say("is evaluated: %s", t.Name)
		if t.made == nil {
			t.made = &Evaluated{Name: t.Name, Configuration: t.configuration(), Content: t.content}
			if err := r.keepEvaluation(t); err != nil { // the configuration first: what has begun is not changed
				return err
			}
		}
		for _, each := range []struct {
			wanted bool
			part   string
			at     []string
			to     *[]Value
		}{{t.before, "before", []string{"--at", "0"}, &t.made.Before}, {true, "after", nil, &t.made.After}} {
			if !each.wanted || len(*each.to) > 0 {
				continue
			}
			values, err := r.eval(ctx, t, each.part, each.at, output)
			if err != nil {
				return fmt.Errorf("evaluation %s: %w", t.Name, err)
			}
			*each.to = values
			if err := r.keepEvaluation(t); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Run) keepEvaluation(t *task) error {
	text, err := json.MarshalIndent(t.made, "", "  ")
	if err != nil {
		return err
	}
	path := r.evaluationFile(t)
	if err := os.MkdirAll(filepath.Dir(path), rundir.DirMode); err != nil {
		return err
	}
	return rundir.WriteFile(path, append(text, '\n'), rundir.FileMode)
}

// eval makes an evaluation, or continues it, in a run of its own. One that failed or
// was killed is continued.
func (r *Run) eval(ctx context.Context, t *task, part string, at []string, output *os.File) ([]Value, error) {
	runs := r.inExperiment(evaluationsDir, r.Name, part)
	dir := filepath.Join(runs, t.Name)
	run, err := filepath.Abs(r.dir)
	if err != nil {
		return nil, err
	}
	for deaths := 0; ; {
		args := []string{"eval", "--resume", dir, "--json"}
		if _, err := os.Stat(rundir.Benchmark(dir)); errors.Is(err, fs.ErrNotExist) {
			// One that was killed before it had its benchmark cannot be continued.
			if err := os.RemoveAll(dir); err != nil {
				return nil, err
			}
			args = append(t.args(run, r.Seed), append([]string{"--name", t.Name, "--runs-dir", runs}, at...)...)
		} else if err != nil {
			return nil, err
		}
		command, err := child(ctx, args, output)
		if err != nil {
			return nil, err
		}
		var figures bytes.Buffer
		command.Stdout = &figures
		ended := command.Run()
		if ended == nil {
			return values(figures.Bytes())
		}
		if deaths++; ctx.Err() != nil || !again(ended) || deaths == maxDeaths {
			return nil, cmp.Or(ctx.Err(), r.why(output, ended))
		}
	}
}

// values returns the figures that codea1 eval has printed as JSON: a line for each suite
// of tests of a benchmark.
func values(text []byte) ([]Value, error) {
	var all []Value
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	for _, line := range lines {
		var kind struct {
			Tests string `json:"tests"`
			K     int    `json:"k"`
		}
		if err := json.Unmarshal(line, &kind); err != nil {
			return nil, fmt.Errorf("codea1 eval has printed no figures: %w", err)
		}
		if kind.K > 0 {
			s := new(evaluation.TestSummary)
			if err := json.Unmarshal(line, s); err != nil {
				return nil, err
			}
			all = append(all, ofTests(s)...)
			continue
		}
		s := new(evaluation.Summary)
		if err := json.Unmarshal(line, s); err != nil {
			return nil, err
		}
		prefix := ""
		if len(lines) > 1 {
			prefix = s.Suite + " "
		}
		for _, v := range ofAnswers(s) {
			all = append(all, Value{prefix + v.Name, v.Value})
		}
	}
	return all, nil
}

func ofTests(s *evaluation.TestSummary) []Value {
	all := []Value{
		{fmt.Sprintf("pass@%d", s.K), s.Pass / 100}, {fmt.Sprintf("mut@%d", s.K), s.Mut / 100}, {"Mul", s.Mul / 100},
		{"suites that pass whole", float64(s.Perfect) / float64(max(1, s.Suites))},
	}
	if s.Measured > 0 {
		all = append(all, Value{"branches", s.Branch / 100})
	}
	if s.Lined > 0 {
		all = append(all, Value{"lines", s.Line / 100})
	}
	return all
}

func ofAnswers(s *evaluation.Summary) []Value {
	all := []Value{{fmt.Sprintf("avg@%d", s.Answers), s.Avg}, {"majority", s.Majority}}
	if s.Chosen != nil {
		all = append(all, Value{"chosen", *s.Chosen})
	}
	for _, p := range s.PassAt {
		if p.K > 1 {
			all = append(all, Value{fmt.Sprintf("pass@%d", p.K), p.Value})
		}
	}
	return all
}
