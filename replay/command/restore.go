package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

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
	Placed  []string `json:"placed,omitempty"`  // versions with a new position of the trainer
	Removed []string `json:"removed,omitempty"` // versions that the log does not have
	Again   []string `json:"retrained,omitempty"`
}

// Run publishes a stopped run's log on an empty bus, and sets the positions of
// recorder and trainers.
func (c *RestoreBusCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger, parent *Command) error {
	if parent.Host == nil {
		return fork.ErrNoHost
	}
	var r restoredJSON
	err := c.with(eventlog.Options{Logger: logger}, func(log *eventlog.Log) error {
		restored, err := fork.RestoreBus(ctx, parent.Host, parent.Retrainer, log, showProgress)
		r = restoredJSON{filepath.Dir(log.Dir()), restored.Events, restored.Open, restored.Placed, restored.Removed, restored.Retrained}
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return export.NewLines(out).Encode(&r)
	}
	table := newTable(out)
	fmt.Fprintf(table, "run\t%s\n", r.Run)
	fmt.Fprintf(table, "published\t%d events of the log\n", r.Events)
	fmt.Fprintf(table, "open\t%d events for the workers\n", r.Open)
	for _, v := range r.Placed {
		fmt.Fprintf(table, "checkpoint\t%s has a new position\n", v)
	}
	for _, v := range r.Removed {
		fmt.Fprintf(table, "removed\t%s: it is not in the log and will be trained again\n", v)
	}
	for _, v := range r.Again {
		fmt.Fprintf(table, "trained again\t%s: its checkpoint did not exist\n", v)
	}
	return table.Flush()
}
