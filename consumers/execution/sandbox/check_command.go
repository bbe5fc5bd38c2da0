package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"
)

// CheckCommand prints how this machine isolates candidates.
type CheckCommand struct {
	Flags
}

// Run prints the level and the results of all attempts to break out. It fails if
// an attempt succeeds at LevelIsolated.
func (c *CheckCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) (err error) {
	if c.Sandbox != "" {
		return fmt.Errorf("--sandbox: %w", ErrThisMachineOnly)
	}
	pool, err := Open(ctx, c.Config(logger))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	attempts, err := pool.BreakOut(ctx)
	if err != nil {
		return err
	}
	about := pool.Describe()
	fmt.Fprintf(out, "python  %s\nlevel   %s: %s\nmemory  %s\n\n", about.Python, about.Level, about.Isolation, about.Bounds)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	succeeded := 0
	for _, a := range attempts {
		word := "stopped"
		if !a.Failed {
			word = "SUCCEEDED"
			succeeded++
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", word, a.Means, a.Detail)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if succeeded > 0 && about.Level == LevelIsolated {
		return fmt.Errorf("%w: %d attempts to break out succeeded", ErrNotIsolated, succeeded)
	}
	return nil
}
