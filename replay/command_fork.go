package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"codea1/events"
)

// ForkCommand is `codea1 replay fork`.
type ForkCommand struct {
	runArgument
	New  string            `arg:"" name:"new" help:"Name of the new run, or its directory, which ends in the name."`
	At   string            `help:"Where the two part: an event's number, step:N, or end." default:"end" placeholder:"POSITION"`
	Set  map[string]string `help:"What the new run does otherwise: flags of train, without their dashes." placeholder:"FLAG=VALUE"`
	JSON bool              `name:"json" help:"Print the report as one JSON object."`
}

// forkedJSON is the report as --json prints it.
type forkedJSON struct {
	Run     string        `json:"run"` // directory
	Origin  originJSON    `json:"origin"`
	Events  uint64        `json:"events"`
	Chain   string        `json:"chain"`
	Tests   int           `json:"tests"`
	Open    uint64        `json:"open"` // deliveries left to the workers
	Newest  []versionJSON `json:"newest"`
	Retrain []string      `json:"retrained,omitempty"` // versions whose checkpoint was gone
}

type originJSON struct {
	Run    string `json:"run"`
	Events uint64 `json:"events"`
	Chain  string `json:"chain"`
}

// Run makes the directory of a run that shares the beginning of another.
func (c *ForkCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger, parent *Command) error {
	if parent.Host == nil {
		return ErrNoHost
	}
	source, err := c.open(logger)
	if err != nil {
		return err
	}
	dir := c.New
	if filepath.Base(dir) == dir {
		dir = filepath.Join(c.RunsDir, dir)
	}
	f := forking{Host: parent.Host, retrainer: parent.Retrainer, source: source, from: filepath.Dir(source.dir), run: filepath.Base(dir), changes: c.Set, logger: logger}
	if f.at, err = source.ResolvePosition(ctx, c.At); err == nil {
		err = intoEmpty(dir, func(partial string) error { return f.fill(ctx, partial) })
	}
	if err := errors.Join(err, source.Close()); err != nil {
		return err
	}
	return c.print(out, dir, &f)
}

func (c *ForkCommand) print(out io.Writer, dir string, f *forking) error {
	r := forkedJSON{
		Run: dir, Origin: originJSON(f.forked.Origin), Events: f.forked.Events, Chain: f.forked.Chain.String(),
		Tests: f.forked.Tests, Open: f.seeded.Open, Newest: versionsJSON(f.forked.Newest), Retrain: f.retrained,
	}
	if c.JSON {
		return newJSONLines(out).Encode(&r)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "run\t%s\n", r.Run)
	fmt.Fprintf(table, "shares\t%d events of %s, chain hash %s\n", r.Origin.Events, r.Origin.Run, r.Origin.Chain)
	fmt.Fprintf(table, "mistake book\t%d tests\n", r.Tests)
	fmt.Fprintf(table, "open\t%d events are left to the workers\n", r.Open)
	for _, v := range r.Newest {
		fmt.Fprintf(table, "%s\tgoes on from v%d, sha256 %s\n", v.Role, v.Version, v.SHA256)
	}
	for _, v := range r.Retrain {
		fmt.Fprintf(table, "trained again\t%s: its checkpoint was gone\n", v)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	again := c.New
	if filepath.Base(again) == again && c.RunsDir != "runs" {
		again = dir
	}
	_, err := fmt.Fprintf(out, "\nGo on with:  codea1 train --resume %s\n", again)
	return err
}

func versionsJSON(newest map[events.Role]*events.PolicyUpdated) []versionJSON {
	var out []versionJSON
	for _, role := range bothRoles {
		if u := newest[role]; u != nil {
			out = append(out, versionJSON{string(role), u.Version, u.Checkpoint.URI, u.Checkpoint.SHA256})
		}
	}
	return out
}

// forking fills the directory of a fork.
type forking struct {
	Host
	retrainer Retrainer
	source    *Log
	from      string // run directory of the origin
	run       string
	at        uint64
	changes   map[string]string
	logger    *slog.Logger

	forked    Forked
	seeded    Seeded
	retrained []string
}

func (f *forking) fill(ctx context.Context, dir string) error {
	meter := newMeter("forking", f.at)
	forked, err := Fork(ctx, f.source, Dir(dir), ForkConfig{
		At: f.at, Run: f.run, Time: time.Now(), Options: Options{Logger: f.logger},
		Configure: func(started *events.RunStarted) error {
			var err error
			if started.Config, err = f.Configure(f.from, started.Config, f.changes); err == nil {
				started.Steps, err = f.Steps(started.Config, started.Problems)
			}
			return err
		},
	}, meter.at)
	meter.finish()
	if err != nil {
		return err
	}
	f.forked = forked
	if err := os.WriteFile(filepath.Join(dir, configFile), []byte(forked.Config), 0o644); err != nil {
		return err
	}
	if err := f.PlaceStart(f.from, dir); err != nil {
		return err
	}
	log, err := Open(Dir(dir), Options{Logger: f.logger})
	if err != nil {
		return err
	}
	return errors.Join(f.goOn(ctx, dir, log), log.Close())
}

// goOn makes bus, log and trainers stand at the fork.
func (f *forking) goOn(ctx context.Context, dir string, log *Log) error {
	versions := make(map[events.Role]int)
	for role, u := range f.forked.Newest {
		versions[role] = u.Version
	}
	s := standing{Host: f.Host, log: log, dir: dir, run: f.run, config: f.forked.Config}
	var err error
	f.seeded, err = s.seed(ctx, slices.Collect(maps.Values(versions)))
	if err != nil {
		return err
	}
	for _, role := range bothRoles {
		if versions[role] == 0 {
			continue
		}
		p := Placement{From: f.from, FromRun: f.forked.Origin.Run, To: dir, Run: f.run, Role: role, Version: versions[role]}
		again, err := s.place(ctx, p, f.retrainer, f.from)
		if err != nil {
			return err
		}
		if again {
			f.retrained = append(f.retrained, fmt.Sprintf("%s v%d", role, versions[role]))
		}
	}
	return log.Rebase(f.seeded.End)
}
