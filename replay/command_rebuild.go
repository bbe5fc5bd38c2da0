package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"text/tabwriter"
)

// RebuildCommand is `codea1 replay rebuild`.
type RebuildCommand struct {
	runArgument
	Into string `arg:"" help:"Directory of the run to make: empty, or not there yet."`
	JSON bool   `name:"json" help:"Print the report as one JSON object."`
}

// rebuiltJSON is the report as --json prints it.
type rebuiltJSON struct {
	Log     string        `json:"log"`
	Events  uint64        `json:"events"`
	Chain   string        `json:"chain"`
	Refused uint64        `json:"refused"`
	Tests   int           `json:"tests"`
	Newest  []versionJSON `json:"newest"`
}

type versionJSON struct {
	Role    string `json:"role"`
	Version int    `json:"version"`
	URI     string `json:"uri"`
	SHA256  string `json:"sha256"`
}

// Run makes a run directory, log and configuration, out of the events of a log
// alone. Curriculum and metrics are made from the log whenever a run starts.
func (c *RebuildCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	if err := emptyDir(c.Into); err != nil {
		return err
	}
	source, err := c.open(logger)
	if err != nil {
		return err
	}
	total, _ := source.Last()
	meter := newMeter("rebuilding", total)
	report, err := Rebuild(ctx, source, Dir(c.Into), Options{Logger: logger}, meter.at)
	meter.finish()
	if err := errors.Join(err, source.Close()); err != nil {
		return err
	}
	if report.Config != "" {
		if err := os.WriteFile(filepath.Join(c.Into, configFile), []byte(report.Config), 0o644); err != nil {
			return err
		}
	}
	return c.print(out, &report)
}

func (c *RebuildCommand) print(out io.Writer, r *Rebuilt) error {
	newest := versionsJSON(r.Newest)
	if c.JSON {
		return newJSONLines(out).Encode(&rebuiltJSON{Dir(c.Into), r.Events, r.Chain.String(), r.Refused, r.Tests, newest})
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "log\t%s\n", Dir(c.Into))
	fmt.Fprintf(table, "events\t%d, the chain ends with %s\n", r.Events, r.Chain)
	fmt.Fprintf(table, "left out\t%d descend from a payload that lost to another\n", r.Refused)
	fmt.Fprintf(table, "mistake book\t%d tests\n", r.Tests)
	for _, v := range newest {
		fmt.Fprintf(table, "%s v%d\t%s\n\tsha256 %s\n", v.Role, v.Version, v.URI, v.SHA256)
	}
	return table.Flush()
}
