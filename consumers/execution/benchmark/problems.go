package benchmark

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	// Completion says that the model continues the text of a prompt.
	Completion bool
	Logger     *slog.Logger

	programs map[string]string // of UnLeakedTestBench without the imports, by problem

	Published string // file of CRUXEval, LiveCodeBench or BigCodeBench among the benchmarks; Make sets it
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

// Make returns the problems of benchmarks, a JSON line each. A published file is a
// benchmark of an evaluation of its own, because its answers are read and graded in its
// own way.
func (m *Maker) Make(ctx context.Context, names []string) ([]byte, error) {
	var text []byte
	seen := map[string]string{}
	for _, name := range names {
		set, err := m.problems(ctx, name)
		if err != nil {
			return nil, err
		}
		if m.Published != "" && (len(names) > 1 || m.Role != events.RoleCode) {
			return nil, fmt.Errorf("benchmark %s: evaluate role code on it, and on no other benchmark in the same run", m.Published)
		}
		for _, p := range set {
			row := row{Problem: p}
			if m.Role == events.RoleTest {
				row.Buggy, p.Tests = []buggy{{Code: cmp.Or(m.programs[p.ID], p.Solution), BugType: "none"}}, p.Tests[:1]
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
	asPublished, pubErr := published.ReadFile(name)
	if pubErr == nil {
		m.Published = name
		return m.published(source, asPublished), nil
	}
	set, known, setErr := m.Sets.Read(ctx, name)
	var unleakedErr error
	if known && setErr != nil {
		if set, unleakedErr = m.readUnleaked(name, source); unleakedErr == nil {
			return set, nil
		}
	}
	switch {
	case setErr == nil:
	case errors.Is(err, evalplus.ErrTwice):
		return nil, err
	case known && !errors.Is(unleakedErr, errNotUnleaked) && !errors.Is(unleakedErr, fs.ErrNotExist):
		return nil, unleakedErr
	case known && !errors.Is(pubErr, published.ErrUnknown) && !errors.Is(pubErr, fs.ErrNotExist):
		return nil, pubErr
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

// The program and the test of a published task in a run. The stages run them; the grade
// of an answer comes from its own text and task.
const (
	anyProgram = "def f(*_):\n    return None\n"
	anyTest    = "assert f() is None"
)

// published returns problems with the prompts of published tasks.
func (m *Maker) published(source string, tasks []published.Task) (set []*evalplus.Problem) {
	for _, t := range tasks {
		set = append(set, &evalplus.Problem{
			ID: t.ID(), Source: source, Question: t.Question(m.Completion), EntryPoint: "f", Solution: anyProgram, Tests: []string{anyTest},
		})
	}
	return set
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
