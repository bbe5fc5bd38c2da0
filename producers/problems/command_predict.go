package problems

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"codea1/events/progress"
)

// Tracer follows a ground truth on the calls of its golden tests, in the sandbox. It leaves
// out tests that it cannot follow. It is safe for concurrent use.
type Tracer interface {
	Trace(ctx context.Context, code, entryPoint string, tests []string) ([]Trace, error)
}

// ErrNothingPredicted is returned for a set without a ground truth that can be followed.
var ErrNothingPredicted = errors.New("no ground truth passes a golden test of the form `assert CALL == LITERAL` in few steps")

// PredictCommand is `codea1 problems predict`.
type PredictCommand struct {
	Set   string `arg:"" help:"Set: builtin, builtin:train, builtin:heldout, builtin:hard, builtin:hard-heldout or a file (.jsonl, .jsonl.gz, .parquet)."`
	Out   string `help:"JSONL file to write; - is standard output." default:"-"`
	Calls int    `help:"Calls of each ground truth that are asked about, at most." default:"2" min:"1" max:"100"`
	Seed  uint64 `help:"Seed of the choice of calls, lines and variables; the same seed gives the same problems." default:"1"`
	setFlags
}

// Run writes one JSON object per predict problem.
func (c *PredictCommand) Run(ctx context.Context, stdout io.Writer, log *slog.Logger, tracer Tracer) (err error) {
	set, _, err := ReadAll(ctx, c.Set, c.options(log))
	if err != nil {
		return err
	}
	made := make([][]Problem, len(set))
	bar := progress.New(os.Stderr, len(set), "tracing")
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range set {
		group.Go(func() error {
			p := &set[i]
			traces, err := tracer.Trace(running, p.Solution, p.EntryPoint, p.Tests)
			if err != nil {
				return fmt.Errorf("tracing problem %s: %w", p.ID, err)
			}
			made[i] = p.Predictions(traces, c.Calls, c.Seed)
			return bar.Add(1)
		})
	}
	if err := errors.Join(group.Wait(), bar.Finish()); err != nil {
		return err
	}
	written := slices.Concat(made...)
	if len(written) == 0 {
		return fmt.Errorf("predict: problem set %s: %w", c.Set, ErrNothingPredicted)
	}
	out := stdout
	if c.Out != "-" {
		file, err := os.Create(c.Out)
		if err != nil {
			return fmt.Errorf("predict: %w", err)
		}
		defer func() {
			if closeErr := file.Close(); err == nil && closeErr != nil {
				err = fmt.Errorf("predict: %w", closeErr)
			}
		}()
		out = file
	}
	buffered := bufio.NewWriter(out)
	encoder := jsonEncoder(buffered)
	for i := range written {
		if err := encoder.Encode(&written[i]); err != nil {
			return fmt.Errorf("predict: %w", err)
		}
	}
	log.Info("predict problems written", "problems", len(written), "of", len(set))
	return buffered.Flush()
}
