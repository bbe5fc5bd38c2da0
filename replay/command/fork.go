package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"codea1/events/commandline"
	"codea1/replay/eventlog"
	"codea1/replay/export"
	"codea1/replay/fork"
	"codea1/replay/query"
)

// ForkCommand is `codea1 replay fork`.
type ForkCommand struct {
	runArgument
	New  string            `arg:"" name:"new" help:"Name of the new run, or its directory, which ends in the name."`
	At   string            `help:"Last shared event: an event's number, step:N, or end." default:"end" placeholder:"POSITION"`
	Set  map[string]string `help:"Settings of the new run that differ: flags of train, without their dashes." placeholder:"FLAG=VALUE"`
	JSON bool              `name:"json" help:"Print the report as one JSON object."`
}

// forkedJSON is the report as --json prints it.
type forkedJSON struct {
	Run     string     `json:"run"` // directory
	Origin  originJSON `json:"origin"`
	Events  uint64     `json:"events"`
	Chain   string     `json:"chain"`
	Tests   int        `json:"tests"`
	Open    uint64     `json:"open"` // deliveries left to the workers
	Newest  []version  `json:"newest"`
	Retrain []string   `json:"retrained,omitempty"` // versions without a checkpoint
}

type originJSON struct {
	Run    string `json:"run"`
	Events uint64 `json:"events"`
	Chain  string `json:"chain"`
}

// Run makes the directory of a run that shares the beginning of another.
func (c *ForkCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger, parent *Command) error {
	if parent.Host == nil {
		return fork.ErrNoHost
	}
	dir := c.New
	if filepath.Base(dir) == dir {
		dir = filepath.Join(c.RunsDir, dir)
	}
	var forked fork.ForkedRun
	err := c.read(logger, func(source *eventlog.Log) error {
		at, err := query.Position(ctx, source, c.At)
		if err != nil {
			return err
		}
		forked, err = fork.Run(ctx, fork.RunConfig{
			Host: parent.Host, Retrainer: parent.Retrainer, Source: source, At: at, Dir: dir,
			Changes: c.Set, Progress: showProgress, Logger: logger,
		})
		return err
	})
	if err != nil {
		return err
	}
	return c.print(out, dir, &forked)
}

func (c *ForkCommand) print(out io.Writer, dir string, f *fork.ForkedRun) error {
	r := forkedJSON{
		Run: dir, Origin: originJSON(f.Origin), Events: f.Events, Chain: f.Chain.String(),
		Tests: f.Tests, Open: f.Open, Newest: versions(f.Newest), Retrain: f.Retrained,
	}
	if c.JSON {
		return export.NewLines(out).Encode(&r)
	}
	table := newTable(out)
	fmt.Fprintf(table, "run\t%s\n", r.Run)
	fmt.Fprintf(table, "shares\t%d events of %s, chain hash %s\n", r.Origin.Events, r.Origin.Run, r.Origin.Chain)
	fmt.Fprintf(table, "mistake book\t%d tests\n", r.Tests)
	fmt.Fprintf(table, "open\t%d events for the workers\n", r.Open)
	for _, v := range r.Newest {
		fmt.Fprintf(table, "%s\tcontinues from v%d, sha256 %s\n", v.Role, v.Version, v.SHA256)
	}
	for _, v := range r.Retrain {
		fmt.Fprintf(table, "trained again\t%s: its checkpoint did not exist\n", v)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	again := c.New
	if filepath.Base(again) == again && c.RunsDir != "runs" {
		again = dir
	}
	_, err := fmt.Fprintf(out, "\nContinue with:  codea1 train --resume %s\n", commandline.Word(again))
	return err
}
