package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"codea1/events/rundir"
	"codea1/replay/eventlog"
	"codea1/replay/export"
	"codea1/replay/fork"
)

// RebuildCommand is `codea1 replay rebuild`.
type RebuildCommand struct {
	runArgument
	Into    string        `arg:"" help:"Directory of the new run: empty or absent."`
	FromBus string        `help:"Read the events from a bus instead of the log: embedded for the run's own store, or nats://HOST:PORT or kafka://HOST:PORT." placeholder:"BUS"`
	Quiet   time.Duration `help:"With --from-bus: the rebuild ends after this long without an event. The recorder of a continued run reads later events." default:"5s" above:"0s"`
	JSON    bool          `name:"json" help:"Print the report as one JSON object."`
}

// rebuiltJSON is the report as --json prints it.
type rebuiltJSON struct {
	Log     string `json:"log"`
	Events  uint64 `json:"events"`
	Chain   string `json:"chain"`
	Refused uint64 `json:"refused"`
	// Quarantine counts the messages that are no events of the run.
	Quarantine eventlog.Quarantine `json:"quarantine"`
	Tests      int                 `json:"tests"`
	Newest     []version           `json:"newest"`
}

// Run makes a run directory with log and configuration from the events of a log or
// of a bus. Curriculum and metrics are computed from the log when a run starts.
func (c *RebuildCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger, parent *Command) error {
	if err := fork.EmptyDir(c.Into); err != nil {
		return err
	}
	rebuild := c.fromLog
	if c.FromBus != "" {
		rebuild = c.fromBus
	}
	report, err := rebuild(ctx, logger, parent)
	if err != nil {
		return err
	}
	if parent.Host != nil && report.Config != "" { // run.started does not set up this machine
		if report.Config, err = parent.Host.Configure(c.Into, report.Config, nil); err != nil {
			return err
		}
	}
	if report.Config != "" {
		if err := rundir.WriteFile(rundir.Config(c.Into), []byte(report.Config), rundir.FileMode); err != nil {
			return err
		}
	}
	return c.print(out, &report)
}

func (c *RebuildCommand) fromLog(ctx context.Context, logger *slog.Logger, _ *Command) (fork.Rebuilt, error) {
	var report fork.Rebuilt
	err := c.read(logger, func(source *eventlog.Log) (err error) {
		total, _ := source.Last()
		meter := newMeter("rebuilding", total)
		defer meter.finish()
		report, err = fork.Rebuild(ctx, source, eventlog.Dir(c.Into), eventlog.Options{Logger: logger}, meter.at)
		return err
	})
	return report, err
}

func (c *RebuildCommand) fromBus(ctx context.Context, logger *slog.Logger, parent *Command) (fork.Rebuilt, error) {
	if parent.Host == nil {
		return fork.Rebuilt{}, fork.ErrNoHost
	}
	if c.Quiet <= 0 {
		return fork.Rebuilt{}, fmt.Errorf("--quiet is %v; want more than 0", c.Quiet)
	}
	dir, config, err := c.runDirectory(parent.Host)
	if err != nil {
		return fork.Rebuilt{}, err
	}
	if config, err = parent.Host.Configure(dir, config, map[string]string{"bus": c.FromBus}); err != nil {
		return fork.Rebuilt{}, err
	}
	run := filepath.Base(dir)
	bus, closeBus, err := parent.Host.OpenBus(ctx, dir, run, config)
	if err != nil {
		return fork.Rebuilt{}, err
	}
	var m *meter
	report, err := fork.RebuildFromBus(ctx, bus, run, eventlog.Dir(c.Into), c.Quiet, eventlog.Options{Logger: logger}, func(done, total uint64) {
		if done == 1 {
			m = newMeter("rebuilding", total)
		}
		m.at(done)
	})
	m.finish()
	return report, errors.Join(err, closeBus())
}

// runDirectory returns the directory of the run and its configuration. If there is
// no directory, the name of the run is enough to find it on a bus with a URL.
func (c *RebuildCommand) runDirectory(host fork.Host) (dir, config string, err error) {
	if dir, err = rundir.Find(c.RunsDir, c.RunDir); err == nil {
		config, err = host.Config(dir)
		return dir, config, err
	}
	if !strings.Contains(c.FromBus, "://") {
		return "", "", err
	}
	dir, err = filepath.Abs(c.RunDir)
	return dir, "", err
}

func (c *RebuildCommand) print(out io.Writer, r *fork.Rebuilt) error {
	newest := versions(r.Newest)
	if c.JSON {
		return export.NewLines(out).Encode(&rebuiltJSON{eventlog.Dir(c.Into), r.Events, r.Chain.String(), r.Refused, r.Quarantine, r.Tests, newest})
	}
	table := newTable(out)
	fmt.Fprintf(table, "log\t%s\n", eventlog.Dir(c.Into))
	fmt.Fprintf(table, "events\t%d, the chain ends with %s\n", r.Events, r.Chain)
	fmt.Fprintf(table, "left out\t%d descend from a payload that does not stand\n", r.Refused)
	fmt.Fprintf(table, "quarantine\t%s\n", quarantineRow(&r.Quarantine))
	fmt.Fprintf(table, "mistake book\t%d tests\n", r.Tests)
	for _, v := range newest {
		fmt.Fprintf(table, "%s v%d\t%s\n\tsha256 %s\n", v.Role, v.Version, v.URI, v.SHA256)
	}
	return table.Flush()
}
