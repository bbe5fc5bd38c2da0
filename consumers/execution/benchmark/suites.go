package benchmark

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution"
	"codea1/consumers/execution/grading"
	"codea1/consumers/execution/mutants"
	"codea1/consumers/execution/probes"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
	"codea1/events/fenced"
	"codea1/events/files"
	"codea1/events/progress"
)

// Group is an executed group of an evaluation.
type Group struct {
	Problem  *events.Problem
	Codes    []string
	Texts    []string // the responses with the codes
	Given    bool     // the programs came with the problem
	Suites   []string // texts of suites that were written in rounds, a block each
	Executed *events.CodeExecuted
}

// SuiteResult is the result of a suite on the ground truth and its mutants.
type SuiteResult struct {
	ID      string // of the problem
	Suite   int    // of the problem, from 0
	Written int    // tests, at most k
	mutants.Judged
	Coverage
}

// Coverage are the branches and the lines of a program, and those that tests take.
type Coverage struct {
	Branches, Taken   int // 0 if they are not known
	Lines, TakenLines int // likewise
}

// Judge runs the first k tests of the suites, of which each group has the same number,
// on the ground truths and their mutants, which of makes. It leaves out the suites that are known, and
// calls each with the result of one suite after the other. It returns the number of
// suites that the sandbox failed on.
func Judge(ctx context.Context, pool *sandbox.Pool, groups []Group, suites, k int, of mutants.Maker, known func(id string, suite int) bool, each func(SuiteResult) error) (masked int, err error) {
	bar := progress.New(os.Stderr, len(groups)*suites, "mutants")
	var mu sync.Mutex // of each and known
	running, ctx := errgroup.WithContext(ctx)
	running.SetLimit(pool.Config().Workers)
	for _, group := range groups {
		truth := &group.Executed.Answers[0]
		if truth.Failure != "" {
			masked += suites
			continue
		}
		for n := range truth.Suites {
			suite := &truth.Suites[n]
			if suite.Failure != "" {
				masked++
				continue
			}
			mu.Lock()
			done := known(group.Problem.ID, n)
			mu.Unlock()
			if done {
				continue
			}
			running.Go(func() error {
				tests, calls, written := stated(suite, k), passing(suite, k), min(len(suite.Tests), k)
				if group.Suites != nil {
					tests = inRounds(group.Suites[n], k)
					calls, written = tests, len(tests)
				}
				result, err := mutants.Judge(ctx, pool, sandbox.Program{Code: group.Problem.Solution, EntryPoint: group.Problem.EntryPoint}, tests, k, of)
				if err != nil {
					return fmt.Errorf("problem %s: %w", group.Problem.ID, err)
				}
				covered, err := coverage(ctx, pool, group.Problem.Solution, calls)
				if err != nil {
					return fmt.Errorf("problem %s: %w", group.Problem.ID, err)
				}
				mu.Lock()
				defer mu.Unlock()
				return errors.Join(each(SuiteResult{group.Problem.ID, n, written, result, covered}), bar.Add(1))
			})
		}
	}
	return masked, errors.Join(running.Wait(), bar.Finish())
}

// passing returns the calls of those of the first k tests of a suite that the ground
// truth passes as stated.
func passing(suite *events.ExecutedSuite, k int) (calls []string) {
	for i := range suite.Tests[:min(k, len(suite.Tests))] {
		if t := &suite.Tests[i]; t.Status == events.StatusKept && !t.Wrong {
			calls = append(calls, t.Call)
		}
	}
	return calls
}

// inRounds returns the first k tests of a suite that was written in rounds. A round
// without a test has an empty block.
func inRounds(suite string, k int) (tests []string) {
	blocks := fenced.Blocks(suite)
	for _, b := range blocks[:min(k, len(blocks))] {
		if b.Text != "" {
			tests = append(tests, b.Text)
		}
	}
	return tests
}

// coverage returns the branches and lines of a ground truth that calls or tests take. It leaves out those that
// raise an exception.
func coverage(ctx context.Context, pool *sandbox.Pool, truth string, calls []string) (c Coverage, err error) {
	found, err := probes.TakenLines(ctx, pool, truth, calls, sandbox.Job{})
	if failure := (*sandbox.Error)(nil); ctx.Err() != nil || errors.Is(err, sandbox.ErrClosed) || errors.As(err, &failure) {
		return c, err
	}
	if err != nil {
		return c, nil // the branches of this program cannot be marked
	}
	return Coverage{found.Total, covered(found.Total, found.Taken), found.TotalLines, covered(found.TotalLines, found.Lines)}, nil
}

// covered returns the number of columns with a 1 in some row. A row may be empty.
func covered(columns int, rows []string) (n int) {
	for column := range columns {
		if slices.ContainsFunc(rows, func(row string) bool { return row != "" && row[column] == '1' }) {
			n++
		}
	}
	return n
}

// Choice has the results of a problem's answers on the tests that were written about
// them.
type Choice struct {
	ID      string            `json:"id"`
	Tests   int               `json:"tests"`
	Codes   []string          `json:"code_sha256"`
	Answers []grading.Crossed `json:"answers"` // as many as there are codes
}

// Of returns the passed tests and the behaviour of answers by the hashes of their codes.
func (c *Choice) Of(codes []string) (passed []int, behaviours []string) {
	for _, code := range codes {
		var on grading.Crossed
		if at := slices.Index(c.Codes, code); at >= 0 {
			on = c.Answers[at]
		}
		passed, behaviours = append(passed, on.Passed), append(behaviours, on.Behaviour)
	}
	return passed, behaviours
}

// Choices runs the first k tests of the suites about the answers of each problem on all
// of these answers. It adds a line per problem to a file, and leaves out the problems
// that the file has.
func Choices(ctx context.Context, pool *sandbox.Pool, path string, groups []Group, k int) (choices map[string]*Choice, err error) {
	choices = map[string]*Choice{}
	file, err := files.Continue(path, func(line []byte) error {
		made := new(Choice)
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
	bar := progress.New(os.Stderr, len(groups), "choices")
	for i := range groups {
		group := &groups[i]
		if choices[group.Problem.ID] != nil {
			continue
		}
		made, err := choose(ctx, pool, group, k)
		if err != nil {
			return nil, fmt.Errorf("problem %s: %w", group.Problem.ID, err)
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

// choose returns the results of the answers of one problem.
func choose(ctx context.Context, pool *sandbox.Pool, group *Group, k int) (*Choice, error) {
	made, tests, codes := &Choice{ID: group.Problem.ID}, []string{}, []string{}
	for i := range group.Executed.Answers {
		answer := &group.Executed.Answers[i]
		if hash := grading.CodeHash(group.Codes[i]); answer.Failure == "" && !slices.Contains(made.Codes, hash) {
			made.Codes, codes = append(made.Codes, hash), append(codes, group.Codes[i])
		}
		for n := range answer.Suites {
			tests = append(tests, stated(&answer.Suites[n], k)...)
		}
	}
	made.Tests = len(tests)
	var err error
	made.Answers, err = grading.Cross(ctx, execution.New(pool), pool.Config().Workers, group.Problem.EntryPoint, codes, tests)
	return made, err
}

// stated returns the tests among the first k statements of a suite, with the values that
// the suite states.
func stated(suite *events.ExecutedSuite, k int) []string {
	var tests []string
	for i := range suite.Tests[:min(k, len(suite.Tests))] {
		if t := &suite.Tests[i]; t.Call != "" {
			tests = append(tests, "assert "+t.Call+" == "+t.Stated)
		}
	}
	return tests
}
