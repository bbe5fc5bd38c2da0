package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"codea1/consumers/execution"
	"codea1/consumers/execution/evalplus"
	"codea1/consumers/execution/sandbox"
	"codea1/consumers/execution/sandboxfusion"
	"codea1/events"
	"codea1/events/settings"
	"codea1/gpuworker"
	"codea1/producers/problems"
)

// ProblemsCommand is `codea1 problems`: the commands of package problems, and those that
// need the templates of the prompts as well.
type ProblemsCommand struct {
	problems.Command `embed:""`
	Corpus           CorpusCommand           `cmd:"" help:"Print training text about the built-in training problems."`
	Prompt           gpuworker.PromptCommand `cmd:"" help:"Print the prompt about a problem, or the template that writes it."`
}

// CorpusCommand is `codea1 problems corpus`.
type CorpusCommand struct {
	problems.CorpusCommand `embed:""`
	Prompts                gpuworker.PromptFlags `embed:""`
}

// Run writes the corpus with the prompts of the templates.
func (c *CorpusCommand) Run(ctx context.Context, out io.Writer) (err error) {
	if c.Prompt, err = c.Prompts.Writer(events.Role(c.Role), c.Mix.Asserts); err != nil {
		return err
	}
	return c.CorpusCommand.Run(ctx, out)
}

// problemSets implements gpuworker.Problems.
type problemSets struct{}

// Find implements gpuworker.Problems.
func (problemSets) Find(ctx context.Context, set, id string, log *slog.Logger) (*events.Problem, error) {
	found, err := problems.Find(ctx, set, id, problems.LoadOptions{Report: func(bad *problems.BadRowError) { log.Warn("row skipped", "error", bad) }})
	if err != nil {
		return nil, err
	}
	problem, _ := found.Posable(false)
	return &problem, nil
}

// evalSets implements benchmark.Sets.
type evalSets struct{}

// Read implements benchmark.Sets.
func (evalSets) Read(ctx context.Context, name string) (rows []*evalplus.Problem, known bool, err error) {
	set, _, err := problems.ReadAll(ctx, name, problems.LoadOptions{})
	for _, p := range set {
		if len(p.Predict) > 0 {
			return nil, true, fmt.Errorf("benchmark %s: %s is a predict problem, whose answers are not run: evaluate it with codea1 train --preset sft --reward golden --heldout %[1]s", name, p.ID)
		}
		rows = append(rows, &evalplus.Problem{ID: p.ID, Question: p.Question, EntryPoint: p.EntryPoint, Solution: p.Solution, Tests: p.Tests, Atol: p.Atol})
	}
	return rows, !errors.Is(err, problems.ErrUnknownSet), err
}

// checker implements problems.Checker and problems.Tracer. It opens the sandbox when the first problem
// is checked.
type checker struct {
	open func() (*sandbox.Pool, error)
}

// Check implements problems.Checker.
func (c *checker) Check(ctx context.Context, code, entryPoint string, tests []string) ([]events.GoldenVerdict, error) {
	pool, err := c.open()
	if err != nil {
		return nil, err
	}
	return execution.New(pool).CheckTruth(ctx, code, entryPoint, tests)
}

// maxTraces bounds the golden tests of a problem that are traced.
const maxTraces = 32

// Trace implements problems.Tracer.
func (c *checker) Trace(ctx context.Context, code, entryPoint string, tests []string) ([]problems.Trace, error) {
	pool, err := c.open()
	if err != nil {
		return nil, err
	}
	found, err := execution.New(pool).Trace(ctx, code, entryPoint, tests, maxTraces)
	traces := make([]problems.Trace, len(found))
	for i := range found {
		traces[i] = problems.Trace(found[i])
	}
	return traces, err
}

// newChecker returns a checker, with the sandbox and the limits that the environment
// describes, and the function that closes it.
func newChecker(ctx context.Context, logger *slog.Logger) (*checker, func() error) {
	var opened *sandbox.Pool
	open := sync.OnceValues(func() (*sandbox.Pool, error) {
		var err error
		var flags sandbox.Flags
		if err = settings.Resolve(&flags, nil, envPrefix); err != nil {
			return nil, err
		}
		opened, err = sandboxfusion.Open(ctx, &flags, logger)
		return opened, err
	})
	return &checker{open}, func() error {
		if opened == nil {
			return nil
		}
		return opened.Close()
	}
}
