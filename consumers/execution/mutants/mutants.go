package mutants

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"time"

	"codea1/consumers/execution"
	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

//go:embed mutants.py
var program string

// Mutant is a program with one change.
type Mutant struct {
	Operator string // that made the change
	Code     string
}

// Limits of making the mutants of a program.
const (
	makeTimeout = time.Minute
	mutantBytes = 8 << 20 // of the text of all mutants
)

// Of returns the mutants of a program, in the order of their changes. The program is
// read, not run. Two mutants may be the same program.
func Of(ctx context.Context, pool *sandbox.Pool, code string) ([]Mutant, error) {
	report, err := pool.RunUncached(ctx, sandbox.Job{
		Code: program, Entry: "mutants", Items: []string{"mutants(" + literal.Text(literal.Str(code)) + ")"},
		Each: makeTimeout, Budget: 2 * makeTimeout, ValueBytes: mutantBytes,
	})
	if err != nil {
		return nil, err
	}
	if !report.Loads {
		return nil, fmt.Errorf("the program that makes mutants does not load: %s", report.LoadError)
	}
	made := report.Outcomes[0]
	if made.Value == nil {
		return nil, fmt.Errorf("making mutants: %s %s", made.Kind, made.Detail)
	}
	value, err := literal.Parse(literal.Text(made.Value)) // a large one is packed
	if err != nil {
		return nil, fmt.Errorf("making mutants: %w", err)
	}
	changes, _ := value.(literal.List)
	mutants := make([]Mutant, 0, len(changes))
	for _, change := range changes {
		c, ok := change.(literal.Tuple)
		if !ok || len(c) != 2 {
			return nil, fmt.Errorf("making mutants: %s is no change", sandbox.Clip(literal.Text(change)))
		}
		operator, _ := c[0].(literal.Str)
		mutant, _ := c[1].(literal.Str)
		mutants = append(mutants, Mutant{string(operator), string(mutant)})
	}
	return mutants, nil
}

// Judged are the results of tests on a ground truth and on its mutants.
type Judged struct {
	Passed   int // tests that the ground truth passes
	Mutants  int // that the tests ran on; 0 unless the ground truth passes as many tests as wanted
	Survived int // mutants that pass all tests
}

// Judge runs tests on a ground truth. If all of them pass, and they are as many as wanted,
// it runs them on its mutants. A
// mutant survives if it passes all tests. One that does not load, or that runs over its
// time, is killed.
func Judge(ctx context.Context, pool *sandbox.Pool, truth sandbox.Program, tests []string, wanted int) (Judged, error) {
	var judged Judged
	if len(tests) == 0 {
		return judged, nil
	}
	x := execution.New(pool)
	plan, err := x.PlanGolden(ctx, truth, tests, 0)
	if err != nil {
		return judged, err
	}
	verdicts, err := x.Grade(ctx, truth, plan)
	if err != nil {
		return judged, err
	}
	failed := func(v events.GoldenVerdict) bool { return v.Verdict != events.VerdictPass }
	for _, v := range verdicts {
		if !failed(v) {
			judged.Passed++
		}
	}
	if judged.Passed < max(len(tests), wanted) {
		return judged, nil
	}
	mutants, err := Of(ctx, pool, truth.Code)
	if err != nil {
		return judged, err
	}
	plan.StopAtTimeout()
	judged.Mutants = len(mutants)
	for _, m := range mutants {
		verdicts, err := x.Grade(ctx, sandbox.Program{Code: m.Code, EntryPoint: truth.EntryPoint}, plan)
		if err != nil {
			return judged, err
		}
		if !slices.ContainsFunc(verdicts, failed) {
			judged.Survived++
		}
	}
	return judged, nil
}
