package problems

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"codea1/events"
)

// ErrNoTruth is wrapped when no ground truth of a set passes its tests.
var ErrNoTruth = errors.New("no ground truth passes its tests")

const (
	// sampleProblems are checked of a set before a training.
	sampleProblems = 64
	// sampleTime bounds the check. Problems that are not reached are not counted.
	sampleTime = time.Minute
	// shownFailures are named.
	shownFailures = 3
)

// CheckSample checks problems that are spread over a set, before a training begins. It
// returns ErrNoTruth if no ground truth passes its tests, and a warning if more than
// a tenth fail; empty for none. Problems without tests are not checked.
func CheckSample(ctx context.Context, checker Checker, set []events.Problem, workers int) (warning string, err error) {
	var tested []*events.Problem
	for i := range set {
		if len(set[i].Golden) > 0 {
			tested = append(tested, &set[i])
		}
	}
	sample := min(sampleProblems, len(tested))
	bounded, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	failures, checked := make([]*Failure, sample), atomic.Int64{}
	group, running := errgroup.WithContext(bounded)
	group.SetLimit(workers)
	for i := range sample {
		group.Go(func() error {
			from := tested[i*len(tested)/sample]
			p := Problem{ID: from.ID, EntryPoint: from.EntryPoint, Solution: from.Solution, Tests: from.Golden}
			failure, err := checkOne(running, checker, &p, sampleTime)
			if err != nil && bounded.Err() != nil {
				return nil
			}
			checked.Add(1)
			failures[i] = failure
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return "", err
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	failed, named := 0, ""
	for _, f := range failures {
		if f == nil {
			continue
		}
		if failed++; failed <= shownFailures {
			named += fmt.Sprintf("; %s: %s", f.ID, summary(f.Reason))
		}
	}
	switch n := int(checked.Load()); {
	case failed == 0:
		return "", nil
	case failed == n:
		return "", fmt.Errorf("%w: all of %d that were checked fail%s", ErrNoTruth, n, named)
	case 10*failed > n:
		return fmt.Sprintf("%d of %d ground truths that were checked fail their tests%s", failed, n, named), nil
	}
	return "", nil
}
