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
	"codea1/consumers/execution/evalplus"
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
