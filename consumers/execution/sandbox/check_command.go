package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"
)

// CheckCommand prints how this machine isolates candidates.
type CheckCommand struct {
	Flags
	JSON bool `name:"json" help:"Print one JSON object: the level, and the attempts to break out."`
}

// checkReport is what the command prints as JSON.
type checkReport struct {
	Python    string         `json:"python"`
	Level     string         `json:"level"`
	Isolation string         `json:"isolation"`
	Memory    string         `json:"memory"`
	Attempts  []checkAttempt `json:"attempts"`
}

type checkAttempt struct {
	Means   string `json:"means"`
	Stopped bool   `json:"stopped"`
	Detail  string `json:"detail"`
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
	report := checkReport{about.Python, fmt.Sprint(about.Level), fmt.Sprint(about.Isolation), fmt.Sprint(about.Bounds), []checkAttempt{}}
	succeeded := 0
	for _, a := range attempts {
		if !a.Failed {
			succeeded++
		}
		report.Attempts = append(report.Attempts, checkAttempt{a.Means, a.Failed, a.Detail})
	}
	if c.JSON {
		err = json.NewEncoder(out).Encode(report)
	} else {
		err = report.print(out)
	}
	if err != nil {
		return err
	}
	if succeeded > 0 && about.Level == LevelIsolated {
		return fmt.Errorf("%w: %d attempts to break out succeeded", ErrNotIsolated, succeeded)
	}
	return nil
}

// print prints the report as a table.
func (r *checkReport) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "python  %s\nlevel   %s: %s\nmemory  %s\n\n", r.Python, r.Level, r.Isolation, r.Memory)
	for _, a := range r.Attempts {
		word := "stopped"
		if !a.Stopped {
			word = "SUCCEEDED"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", word, a.Means, a.Detail)
	}
	return table.Flush()
}
