package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"text/tabwriter"

	"codea1/replay/eventlog"
	"codea1/replay/export"
	"codea1/replay/fork"
)

// RestoreBusCommand is `codea1 replay restore-bus`.
type RestoreBusCommand struct {
	runArgument
	JSON bool `name:"json" help:"Print the report as one JSON object."`
}

// restoredJSON is the report as --json prints it.
type restoredJSON struct {
	Run     string   `json:"run"` // directory
	Events  uint64   `json:"events"`
	Open    uint64   `json:"open"`              // deliveries left to the workers
	Placed  []string `json:"placed,omitempty"`  // versions whose trainer stands anew
	Removed []string `json:"removed,omitempty"` // versions that the log does not know
	Again   []string `json:"retrained,omitempty"`
}

// Run publishes a stopped run's log on an empty bus, and makes recorder and
// trainers stand there. What the old bus had beyond the log is made again: it
// follows from what the log has. An embedded bus is put aside, another one has
// to be emptied of the run before.
func (c *RestoreBusCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger, parent *Command) error {
	if parent.Host == nil {
		return fork.ErrNoHost
	}
	log, err := c.openWith(eventlog.Options{Logger: logger})
	if err != nil {
		return err
	}
	restored, err := fork.RestoreBus(ctx, parent.Host, parent.Retrainer, log, showProgress)
	if err := errors.Join(err, log.Close()); err != nil {
		return err
	}
	r := restoredJSON{filepath.Dir(log.Dir()), restored.Events, restored.Open, restored.Placed, restored.Removed, restored.Retrained}
	if c.JSON {
		return export.NewLines(out).Encode(&r)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "run\t%s\n", r.Run)
	fmt.Fprintf(table, "published\t%d events of the log\n", r.Events)
	fmt.Fprintf(table, "open\t%d events are left to the workers\n", r.Open)
	for _, v := range r.Placed {
		fmt.Fprintf(table, "checkpoint\t%s stands anew\n", v)
	}
	for _, v := range r.Removed {
		fmt.Fprintf(table, "removed\t%s: the log has not heard of it, it will be trained again\n", v)
	}
	for _, v := range r.Again {
		fmt.Fprintf(table, "trained again\t%s: its checkpoint was gone\n", v)
	}
	return table.Flush()
}
