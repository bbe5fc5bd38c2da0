package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/evaluation"
	"codea1/consumers/execution"
	"codea1/consumers/execution/evalplus"
	"codea1/consumers/execution/grading"
	"codea1/consumers/execution/mutants"
	"codea1/consumers/execution/sandbox"
	"codea1/consumers/execution/sandboxfusion"
	"codea1/events"
	"codea1/events/files"
	"codea1/events/rundir"
)

// reportTests runs the suites of an evaluation on the ground truths and their mutants,
// and prints the figures. It adds a line per suite to a file of the run directory, and
// leaves out the suites that the file has.
func (c *EvalCommand) reportTests(ctx context.Context, begun *begunRun, rows map[string]*evalplus.Problem, gathered *evaluation.Gathered, progress, out io.Writer, logger *slog.Logger) (err error) {
	k, done := begun.Curriculum.Tests, map[string]*evaluation.TestResult{}
	file, err := files.Continue(rundir.Tests(begun.dir), func(line []byte) error {
		r, err := evaluation.ReadTestResult(line)
		if err == nil {
			done[r.Key()] = r
		}
		return err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	pool, err := sandboxfusion.Open(ctx, &begun.Sandbox, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	groups, masked := gathered.Groups(), 0
	bar := newBar(len(groups)*begun.Evaluation.EvalSuites, "mutants")
	var mu sync.Mutex // of done and file
	running, ctx := errgroup.WithContext(ctx)
	running.SetLimit(pool.Config().Workers)
	for _, group := range groups {
		if group.Executed.Answers[0].Failure != "" {
			masked += begun.Evaluation.EvalSuites
			continue
		}
		for n := range group.Executed.Answers[0].Suites {
			suite, r := &group.Executed.Answers[0].Suites[n], &evaluation.TestResult{ID: group.Problem.ID, Suite: n}
			mu.Lock()
			known := done[r.Key()] != nil
			mu.Unlock()
			if suite.Failure != "" {
				masked++
			}
			if known || suite.Failure != "" {
				continue
			}
			running.Go(func() error {
				tests := statedTests(suite, k)
				judged, err := mutants.Judge(ctx, pool, sandbox.Program{Code: group.Problem.Solution, EntryPoint: group.Problem.EntryPoint}, tests, k)
				if err != nil {
					return fmt.Errorf("problem %s: %w", r.ID, err)
				}
				r.Written, r.Passed, r.Mutants, r.Survived = min(len(suite.Tests), k), judged.Passed, judged.Mutants, judged.Survived
				line, err := json.Marshal(r)
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				done[r.Key()] = r
				_, err = file.Write(append(line, '\n'))
				return errors.Join(err, bar.Add(1))
			})
		}
	}
	if err := errors.Join(running.Wait(), bar.Finish()); err != nil {
		return fmt.Errorf("%w; codea1 eval --resume %s continues", err, begun.dir)
	}
	sayLost(progress, masked, gathered.Dropped)
	bySource := map[string][]*evaluation.TestResult{}
	for _, key := range slices.Sorted(maps.Keys(done)) {
		if row := rows[done[key].ID]; row != nil {
			bySource[row.Source] = append(bySource[row.Source], done[key])
		}
	}
	for _, source := range slices.Sorted(maps.Keys(bySource)) {
		sum := evaluation.SummarizeTests(bySource[source], k)
		sum.Benchmark = source
		print := sum.Print
		if c.JSON {
			print = func(out io.Writer) error { return json.NewEncoder(out).Encode(sum) }
		}
		if err := print(out); err != nil {
			return err
		}
	}
	return nil
}

// choice has the results of a problem's answers on the tests that were written about them:
// a line of a file in the run directory.
type choice struct {
	ID      string            `json:"id"`
	Tests   int               `json:"tests"`
	Codes   []string          `json:"code_sha256"`
	Answers []grading.Crossed `json:"answers"` // as many as there are codes
}

// of returns the answer that is chosen. answers are those of the choice.
func (c *choice) of(answers []evaluation.Answer) int {
	var passed []int
	var behaviours []string
	for i := range answers {
		var on grading.Crossed
		if at := slices.Index(c.Codes, answers[i].Code); at >= 0 {
			on = c.Answers[at]
		}
		passed, behaviours = append(passed, on.Passed), append(behaviours, on.Behaviour)
	}
	return evaluation.Choose(passed, behaviours)
}

// choose runs the tests that were written about the answers of each problem on all of
// these answers. It adds a line per problem to a file of the run directory, and leaves
// out the problems that the file has.
func (c *EvalCommand) choose(ctx context.Context, begun *begunRun, gathered *evaluation.Gathered, logger *slog.Logger) (choices map[string]*choice, err error) {
	choices = map[string]*choice{}
	file, err := files.Continue(rundir.Choices(begun.dir), func(line []byte) error {
		made := new(choice)
		err := json.Unmarshal(line, made)
		if err == nil && (made.ID == "" || len(made.Codes) != len(made.Answers)) {
			err = errors.New("want id, code_sha256 and answers")
		}
		choices[made.ID] = made
		return err
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	pool, err := sandboxfusion.Open(ctx, &begun.Sandbox, logger)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	groups := gathered.Groups()
	bar := newBar(len(groups), "choices")
	for _, group := range groups {
		if choices[group.Problem.ID] != nil {
			continue
		}
		made, tests, codes := &choice{ID: group.Problem.ID}, []string{}, []string{}
		for i := range group.Executed.Answers {
			answer := &group.Executed.Answers[i]
			if hash := grading.CodeHash(group.Codes[i]); answer.Failure == "" && !slices.Contains(made.Codes, hash) {
				made.Codes, codes = append(made.Codes, hash), append(codes, group.Codes[i])
			}
			for n := range answer.Suites {
				tests = append(tests, statedTests(&answer.Suites[n], begun.Curriculum.Tests)...)
			}
		}
		made.Tests = len(tests)
		if made.Answers, err = grading.Cross(ctx, execution.New(pool), pool.Config().Workers, group.Problem.EntryPoint, codes, tests); err != nil {
			return nil, fmt.Errorf("problem %s: %w; codea1 eval --resume %s continues", made.ID, err, begun.dir)
		}
		line, err := json.Marshal(made)
		if err == nil {
			_, err = file.Write(append(line, '\n'))
		}
		if err := errors.Join(err, bar.Add(1)); err != nil {
			return nil, err
		}
		choices[made.ID] = made
	}
	return choices, bar.Finish()
}

// statedTests returns the tests among the first k statements of a suite, with the values
// that the suite states.
func statedTests(suite *events.ExecutedSuite, k int) []string {
	var tests []string
	for i := range suite.Tests[:min(k, len(suite.Tests))] {
		if t := &suite.Tests[i]; t.Call != "" {
			tests = append(tests, "assert "+t.Call+" == "+t.Stated)
		}
	}
	return tests
}
