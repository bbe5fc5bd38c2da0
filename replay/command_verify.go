package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"
)

// VerifyCommand is `codea1 replay verify`.
type VerifyCommand struct {
	runArgument
	JSON bool `name:"json" help:"Print the report as one JSON object."`
}

// verified is a report as --json prints it.
type verified struct {
	Log      string            `json:"log"`
	Events   uint64            `json:"events"`
	Chain    string            `json:"chain"`
	ByType   map[string]uint64 `json:"by_type"`
	Refused  uint64            `json:"refused"`
	Tests    int               `json:"tests"`
	Problems int               `json:"problems"`
}

// Run checks the log and returns a *CorruptError that names the first place
// where it is damaged.
func (c *VerifyCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	l, err := c.open(logger)
	if err != nil {
		return err
	}
	report, err := verifyWithProgress(ctx, l, os.Stderr)
	if err := errors.Join(err, l.Close()); err != nil {
		return err
	}
	return c.print(out, l.dir, &report)
}

func verifyWithProgress(ctx context.Context, l *Log, progress io.Writer) (Report, error) {
	// Most logs are done before a bar could be read.
	const showFrom = 20_000
	total, _ := l.Last()
	if total < showFrom {
		return l.Verify(ctx, nil)
	}
	bar := progressbar.NewOptions64(int64(total),
		progressbar.OptionSetWriter(progress), progressbar.OptionSetDescription("verifying"),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	report, err := l.Verify(ctx, func(done, _ uint64) {
		if done%512 == 0 {
			_ = bar.Set64(int64(done)) // a bar that cannot be drawn is no reason to stop
		}
	})
	_ = bar.Finish()
	return report, err
}

func (c *VerifyCommand) print(out io.Writer, dir string, r *Report) error {
	if c.JSON {
		v := verified{Log: dir, Events: r.Events, Chain: r.Chain.String(), ByType: make(map[string]uint64), Refused: r.Refused, Tests: r.Tests, Problems: r.Problems}
		for t, n := range r.ByType {
			v.ByType[string(t)] = n
		}
		return json.NewEncoder(out).Encode(v)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "log\t%s\n", dir)
	fmt.Fprintf(table, "events\t%d, each once and without a gap\n", r.Events)
	for _, t := range slices.Sorted(maps.Keys(r.ByType)) {
		fmt.Fprintf(table, "  %s\t%d\n", t, r.ByType[t])
	}
	fmt.Fprintf(table, "left out\t%d descend from a payload that lost to another\n", r.Refused)
	fmt.Fprintf(table, "hash chain\tintact, ends with %s\n", r.Chain)
	fmt.Fprintf(table, "mistake book\t%d tests of %d problems, as rebuilt from the events\n", r.Tests, r.Problems)
	return table.Flush()
}
