package problems

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"codea1/events"
	"codea1/events/progress"
)

// ErrCheckFailed is wrapped when a ground truth fails its golden tests.
var ErrCheckFailed = errors.New("problems check failed")

// Checker runs golden tests on a program in the sandbox. It returns one verdict
// per test, in order. An error means that the sandbox failed, not the program.
// It is safe for concurrent use.
type Checker interface {
	Check(ctx context.Context, code, entryPoint string, tests []string) ([]events.GoldenVerdict, error)
}

// Failure is a problem with a ground truth that fails.
type Failure struct {
	ID     string `json:"id"`
	Test   string `json:"test,omitempty"` // the first test that does not pass
	Reason string `json:"reason"`
}

// Report is the result of checking a set.
type Report struct {
	Set         string    `json:"set"`
	Problems    int       `json:"problems"`
	Passed      int       `json:"passed"`
	SkippedRows int       `json:"skipped_rows"`
	Failures    []Failure `json:"failures"`
}

// CheckCommand is `codea1 problems check`.
type CheckCommand struct {
	Set     string        `arg:"" help:"Set: builtin, builtin:train, builtin:heldout, builtin:hard, builtin:hard-heldout or a file (.jsonl, .jsonl.gz, .parquet)."`
	Workers int           `help:"Problems checked at the same time; 0: one per CPU." default:"0" min:"0" max:"1024"`
	Timeout time.Duration `help:"Time limit of one problem." default:"60s" above:"0s"`
	JSON    bool          `name:"json" help:"Print the report as one JSON object."`
	setFlags
}

// Run checks the set and returns ErrCheckFailed unless every problem passes.
func (c *CheckCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger, checker Checker) error {
	set, skipped, err := ReadAll(ctx, c.Set, c.options(log))
	if err != nil {
		return err
	}
	failures, err := c.check(ctx, os.Stderr, set, checker)
	if err != nil {
		return err
	}
	report := Report{Set: c.Set, Problems: len(set), Passed: len(set) - len(failures), SkippedRows: skipped, Failures: failures}
	if c.JSON {
		err = jsonEncoder(out).Encode(report)
	} else {
		err = report.print(out)
	}
	if err == nil && len(failures) > 0 {
		err = fmt.Errorf("%w: %d of %d", ErrCheckFailed, len(failures), len(set))
	}
	return err
}

// check returns the failures in the order of the set. It draws progress on a
// terminal only.
func (c *CheckCommand) check(ctx context.Context, to io.Writer, set []Problem, checker Checker) ([]Failure, error) {
	bar := progress.New(to, len(set), "checking")
	workers := c.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	results := make([]*Failure, len(set))
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := range set {
		group.Go(func() error {
			if err := running.Err(); err != nil {
				return err
			}
			failure, err := checkOne(running, checker, &set[i], c.Timeout)
			if err != nil {
				return err
			}
			results[i] = failure
			return bar.Add(1)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	failures := []Failure{}
	for _, failure := range results {
		if failure != nil {
			failures = append(failures, *failure)
		}
	}
	return failures, bar.Finish()
}

// checkOne returns nil if the ground truth passes all its tests.
func checkOne(ctx context.Context, checker Checker, p *Problem, timeout time.Duration) (*Failure, error) {
	if len(p.Tests) == 0 {
		return &Failure{ID: p.ID, Reason: "has no golden tests"}, nil
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	verdicts, err := checker.Check(bounded, p.Solution, p.EntryPoint, p.Tests)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && bounded.Err() != nil:
		return &Failure{ID: p.ID, Reason: fmt.Sprintf("took longer than %v", timeout)}, nil
	case err != nil:
		return nil, fmt.Errorf("checking problem %s: %w", p.ID, err)
	case len(verdicts) != len(p.Tests):
		return nil, fmt.Errorf("checking problem %s: %d verdicts for %d tests", p.ID, len(verdicts), len(p.Tests))
	}
	for i, v := range verdicts {
		if v.Verdict != events.VerdictPass {
			return &Failure{ID: p.ID, Test: p.Tests[i], Reason: reason(v)}, nil
		}
	}
	return nil, nil
}

func reason(v events.GoldenVerdict) string {
	if v.Detail == "" {
		return string(v.Verdict)
	}
	return string(v.Verdict) + ": " + v.Detail
}

func (r *Report) print(out io.Writer) error {
	var b strings.Builder
	for _, failure := range r.Failures {
		fmt.Fprintf(&b, "%s: %s\n", failure.ID, failure.Reason)
		if failure.Test != "" {
			fmt.Fprintln(&b, indent(summary(failure.Test)))
		}
	}
	fmt.Fprintf(&b, "%d/%d problems pass\n", r.Passed, r.Problems)
	if r.SkippedRows > 0 {
		fmt.Fprintf(&b, "%d bad rows skipped\n", r.SkippedRows)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
