package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"codea1/events"
)

// configFile is where a run directory keeps the run's configuration.
const configFile = "config.yaml"

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
		return ErrNoHost
	}
	log, err := c.openWith(Options{Logger: logger})
	if err != nil {
		return err
	}
	r := restoring{retrainer: parent.Retrainer, report: restoredJSON{Run: filepath.Dir(log.dir)}}
	r.standing = standing{Host: parent.Host, log: log, dir: r.report.Run}
	if err := errors.Join(r.restore(ctx), log.Close()); err != nil {
		return err
	}
	if c.JSON {
		return newJSONLines(out).Encode(&r.report)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "run\t%s\n", r.report.Run)
	fmt.Fprintf(table, "published\t%d events of the log\n", r.report.Events)
	fmt.Fprintf(table, "open\t%d events are left to the workers\n", r.report.Open)
	for _, v := range r.report.Placed {
		fmt.Fprintf(table, "checkpoint\t%s stands anew\n", v)
	}
	for _, v := range r.report.Removed {
		fmt.Fprintf(table, "removed\t%s: the log has not heard of it, it will be trained again\n", v)
	}
	for _, v := range r.report.Again {
		fmt.Fprintf(table, "trained again\t%s: its checkpoint was gone\n", v)
	}
	return table.Flush()
}

// restoring brings bus and trainers back to a log.
type restoring struct {
	standing
	retrainer Retrainer
	report    restoredJSON
}

func (r *restoring) restore(ctx context.Context) error {
	config, err := os.ReadFile(filepath.Join(r.dir, configFile))
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	r.config = string(config)
	if r.run, err = r.log.run(ctx); err != nil {
		return err
	}
	newest, err := r.log.newest(ctx)
	if err != nil {
		return err
	}
	// A version that the log does not know may have learnt from events that are
	// lost: what replaces them may not be the same.
	kept := make(map[events.Role][]int)
	var versions []int
	for _, role := range bothRoles {
		all, err := r.Checkpoints(r.dir, role)
		if err != nil {
			return err
		}
		for _, v := range all {
			if v <= newest[role] {
				kept[role] = append(kept[role], v)
				continue
			}
			if err := r.RemoveCheckpoint(r.dir, role, v); err != nil {
				return err
			}
			r.report.Removed = append(r.report.Removed, fmt.Sprintf("%s v%d", role, v))
		}
		if v := newest[role]; v > 0 && !slices.Contains(kept[role], v) {
			kept[role] = append(kept[role], v) // to be made again
		}
		versions = append(versions, kept[role]...)
	}
	if err := r.PutBusAside(r.dir, r.config); err != nil {
		return err
	}
	seeded, err := r.seed(ctx, versions)
	if err != nil {
		return err
	}
	r.report.Events, r.report.Open = seeded.Events, seeded.Open
	for _, role := range bothRoles {
		for _, v := range kept[role] {
			p := Placement{From: r.dir, FromRun: r.run, To: r.dir, Run: r.run, Role: role, Version: v}
			again, err := r.place(ctx, p, r.retrainer, r.dir)
			if err != nil {
				return err
			}
			name := fmt.Sprintf("%s v%d", role, v)
			if again {
				r.report.Again = append(r.report.Again, name)
			} else {
				r.report.Placed = append(r.report.Placed, name)
			}
		}
	}
	// Last: a restore that was interrupted is begun again.
	return r.log.Rebase(seeded.End)
}
