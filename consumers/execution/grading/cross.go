package grading

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// Crossed is the result of one answer on the tests that were written for all answers.
type Crossed struct {
	Passed    int    `json:"passed"`    // tests, each as often as it was written
	Behaviour string `json:"behaviour"` // equal for two answers with the same outcome of every test
}

// Cross runs tests on answers, several at a time. No ground truth takes part.
func Cross(ctx context.Context, x *execution.Executor, workers int, entry string, codes, tests []string) ([]Crossed, error) {
	times, distinct := map[string]int{}, []string{}
	for _, t := range tests {
		if times[t]++; times[t] == 1 {
			distinct = append(distinct, t)
		}
	}
	plan, err := x.PlanGolden(ctx, sandbox.Program{EntryPoint: entry}, distinct, 0)
	if err != nil {
		return nil, err
	}
	all := make([]Crossed, len(codes))
	running, ctx := errgroup.WithContext(ctx)
	running.SetLimit(workers)
	for i, code := range codes {
		running.Go(func() error {
			report, verdicts, err := x.GradeWithReport(ctx, sandbox.Program{Code: code, EntryPoint: entry}, plan)
			if err != nil {
				return err
			}
			for j, v := range verdicts {
				if v.Verdict == events.VerdictPass {
					all[i].Passed += times[distinct[j]]
				}
			}
			all[i].Behaviour = Behaviour(report.Loads, verdicts)
			return nil
		})
	}
	return all, running.Wait()
}

// Behaviour returns a text that two answers share if every test ended in the same way
// for both, with the same value where it is not the expected one.
func Behaviour(loads bool, verdicts []events.GoldenVerdict) string {
	hash := sha256.New()
	fmt.Fprintln(hash, loads)
	for _, v := range verdicts {
		fmt.Fprintf(hash, "%s %q\n", v.Verdict, v.Detail)
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}
