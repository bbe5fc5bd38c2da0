package published

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution"
	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
)

// Grader grades answers in a sandbox.
type Grader struct {
	pool *sandbox.Pool
	x    *execution.Executor
	each time.Duration // for one test of LiveCodeBench

	mu       sync.Mutex
	emitting sync.Mutex
	has      map[string]bool // modules that Python has, as far as they are known
}

// NewGrader returns a Grader that runs answers in pool.
func NewGrader(pool *sandbox.Pool) *Grader {
	return &Grader{pool: pool, x: execution.New(pool), each: max(liveCodeTime, pool.Config().CallTimeout), has: map[string]bool{}}
}

// Result is the result of one task.
type Result struct {
	Task     Task
	Verdicts []Verdict // one per sample
	Missing  []string  // modules that Python lacks; then nothing has run
	Failure  string    // a failure of the sandbox; then the verdicts are not complete
}

// Grade grades the samples of tasks, several tasks at a time, and calls emit with each
// result, one at a time. A task without samples has no result.
func (g *Grader) Grade(ctx context.Context, tasks []Task, samples map[string][]string, emit func(*Result) error) error {
	running, ctx := errgroup.WithContext(ctx)
	running.SetLimit(g.pool.Config().Workers)
	for _, t := range tasks {
		if len(samples[t.ID()]) == 0 {
			continue
		}
		running.Go(func() error {
			r := g.task(ctx, t, samples[t.ID()])
			if ctx.Err() != nil {
				return ctx.Err() // the result may be incomplete
			}
			g.emitting.Lock()
			defer g.emitting.Unlock()
			return emit(r)
		})
	}
	return running.Wait()
}

func (g *Grader) task(ctx context.Context, t Task, answers []string) *Result {
	r := &Result{Task: t}
	lacks, err := g.lacks(ctx, t.modules())
	if r.Missing = lacks; err == nil && len(lacks) > 0 {
		return r
	}
	for _, answer := range answers {
		var v Verdict
		if err == nil {
			v, err = t.grade(ctx, g, answer)
		}
		if err != nil {
			r.Failure = sandbox.Clip(err.Error())
			return r
		}
		v.Answer, v.Reason = answer, sandbox.Clip(v.Reason)
		r.Verdicts = append(r.Verdicts, v)
	}
	return r
}

// findModule is a program that says whether Python has a module.
const findModule = "from importlib.util import find_spec\ndef has(name):\n    return find_spec(name) is not None\n"

// lacks returns the modules that the sandbox's Python lacks.
func (g *Grader) lacks(ctx context.Context, modules []string) (lacking []string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range modules {
		if _, known := g.has[name]; !known {
			call := "has(" + literal.Text(literal.Str(name)) + ")"
			report, err := g.pool.Run(ctx, sandbox.Program{Code: findModule, EntryPoint: "has"}, []string{call})
			if err != nil {
				return nil, err
			}
			o := report.Outcomes[0]
			g.has[name] = o.Kind == sandbox.Returned && literal.Equal(o.Value, literal.Bool(true))
		}
		if !g.has[name] {
			lacking = append(lacking, name)
		}
	}
	return lacking, nil
}

// unreached says why an outcome is no value that could be compared; empty if it is one.
func unreached(o sandbox.Outcome) string {
	if o.Kind == sandbox.Returned && o.Value != nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("it %s %s", o.Kind, o.Detail))
}
