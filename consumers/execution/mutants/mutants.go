package mutants

import (
	"context"
	"slices"

	"codea1/consumers/execution"
	"codea1/consumers/execution/probes"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// Judged are the results of tests on a ground truth and on its mutants.
type Judged struct {
	Passed   int // tests that the ground truth passes
	Mutants  int // that the tests ran on; 0 unless the ground truth passes as many tests as wanted
	Survived int // mutants that pass all tests
}

// Maker makes the mutants of a program: probes.Mutants or probes.CosmicRay.
type Maker func(ctx context.Context, pool *sandbox.Pool, code string) ([]probes.Mutant, error)

// Judge runs tests on a ground truth. If all of them pass, and they are as many as wanted,
// it runs them on its mutants. A
// mutant survives if it passes all tests. One that does not load, or that runs over its
// time, is killed. of makes the mutants.
func Judge(ctx context.Context, pool *sandbox.Pool, truth sandbox.Program, tests []string, wanted int, of Maker) (Judged, error) {
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
	mutants, err := of(ctx, pool, truth.Code)
	if err != nil {
		return judged, err
	}
	plan.StopEarly(0)
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
