package benchmark

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution"
	"codea1/consumers/execution/evalplus"
	"codea1/consumers/execution/grading"
	"codea1/consumers/execution/published"
	"codea1/consumers/execution/sandbox"
	"codea1/consumers/execution/sandboxfusion"
	"codea1/events"
	"codea1/events/progress"
)

// Sets reads problem sets of the project.
type Sets interface {
	// Read returns the problems of a set by its name, and false for a name that is
	// not that of a set.
	Read(ctx context.Context, name string) ([]*evalplus.Problem, bool, error)
}

// Maker makes the problems of an evaluation.
type Maker struct {
	Sets    Sets
	Sandbox *sandbox.Flags
	Role    events.Role // that is evaluated
	Logger  *slog.Logger
}

// row is a line of the problems of an evaluation. A problem set can be read from it.
type row struct {
	*evalplus.Problem
	// Buggy has the ground truth where suites are evaluated: they are written for it.
	Buggy []buggy `json:"buggy,omitempty"`
}

type buggy struct {
	Code    string `json:"code"`
	BugType string `json:"bug_type"`
}

// Make returns the problems of benchmarks, a JSON line each.
func (m *Maker) Make(ctx context.Context, names []string) ([]byte, error) {
	var text []byte
	seen := map[string]string{}
	for _, name := range names {
		set, err := m.problems(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, p := range set {
			row := row{Problem: p}
			if m.Role == events.RoleTest {
				row.Buggy, p.Tests = []buggy{{Code: p.Solution, BugType: "none"}}, p.Tests[:1]
			}
			if other := seen[row.ID]; other != "" {
				return nil, fmt.Errorf("problem %s is in %s and in %s: evaluate them one after the other", row.ID, other, name)
			}
			seen[row.ID] = name
			line, err := json.Marshal(row)
			if err != nil {
				return nil, err
			}
			text = append(append(text, line...), '\n')
		}
	}
	return text, nil
}

// problems returns the problems of a benchmark.
func (m *Maker) problems(ctx context.Context, name string) ([]*evalplus.Problem, error) {
	source := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(name), ".gz"), ".jsonl")
	tasks, err := evalplus.ReadFile(name)
	if err == nil {
		return m.released(ctx, source, tasks)
	}
	if _, err := published.ReadFile(name); err == nil {
		return nil, fmt.Errorf("benchmark %s: answers to it can only be graded, by eval --samples-file", name)
	}
	set, known, setErr := m.Sets.Read(ctx, name)
	switch {
	case setErr == nil:
	case !known || !errors.Is(err, evalplus.ErrFormat):
		return nil, setErr
	default:
		return nil, fmt.Errorf("benchmark %s is neither a release file of EvalPlus nor a problem set: %w; %w", name, err, setErr)
	}
	for _, p := range set {
		if len(p.Tests) == 0 {
			return nil, fmt.Errorf("%s: problem %s has no tests", name, p.ID)
		}
		p.Source = source
	}
	return set, nil
}

// released runs the ground truths of EvalPlus's tasks to make their tests.
func (m *Maker) released(ctx context.Context, source string, tasks []*evalplus.Task) (set []*evalplus.Problem, err error) {
	pool, err := sandboxfusion.Open(ctx, m.Sandbox, m.Logger)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	bar := progress.New(os.Stderr, len(tasks), "expected values of "+source)
	set = make([]*evalplus.Problem, len(tasks))
	running, ctx := errgroup.WithContext(ctx)
	running.SetLimit(pool.Config().Workers)
	for i, task := range tasks {
		running.Go(func() error {
			p, err := task.Problem(ctx, execution.New(pool))
			if err != nil {
				return err
			}
			p.Source, set[i] = source, p
			return bar.Add(1)
		})
	}
	return set, errors.Join(running.Wait(), bar.Finish())
}

// Read returns the problems of a file of Make by their IDs.
func Read(path string) (map[string]*evalplus.Problem, error) {
	set := map[string]*evalplus.Problem{}
	return set, grading.ReadLines(path, func(line []byte) error {
		p := new(evalplus.Problem)
		err := json.Unmarshal(line, p)
		set[p.ID] = p
		return err
	})
}
