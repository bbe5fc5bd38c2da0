package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"codea1/events"
	"codea1/events/commandline"
	"codea1/replay/eventlog"
	"codea1/replay/export"
	"codea1/replay/fork"
	"codea1/replay/query"
)

// Command is `codea1 replay`.
type Command struct {
	// Recipes computes rewards. Without it verify does not check rewards, and
	// rescore returns query.ErrNoRecipes.
	Recipes query.Recipes `kong:"-"`
	// Retrainer repeats training. Without it retrain returns fork.ErrNoRetrainer.
	Retrainer fork.Retrainer `kong:"-"`
	// Host opens buses and checkpoints. Without it fork and restore-bus return
	// fork.ErrNoHost.
	Host fork.Host `kong:"-"`

	Compact    CompactCommand    `cmd:"" help:"Remove token ids and log-probs from the older part of a log, and free their disk space."`
	Explain    ExplainCommand    `cmd:"" help:"Explain a group from its problem to the weights, or the update of a step."`
	Export     ExportCommand     `cmd:"" help:"Write events, or tables of answers and tests, as JSONL or parquet."`
	Fork       ForkCommand       `cmd:"" help:"Make a new run that shares the beginning of another; train --resume continues it."`
	Quarantine QuarantineCommand `cmd:"" help:"List the messages on the bus of a run that are no events of it."`
	Rebuild    RebuildCommand    `cmd:"" help:"Rebuild a run's log, Mistake Book and configuration from its events, in another directory."`
	Rescore    RescoreCommand    `cmd:"" help:"Reward the groups of a run under another recipe, and report the differences."`
	Retrain    RetrainCommand    `cmd:"" help:"Train a run's models again from its log, and compare the weights of every version."`
	RestoreBus RestoreBusCommand `cmd:"" name:"restore-bus" help:"Publish the log of a stopped run on a new bus, for example after a power cut has damaged the old one."`
	Scan       ScanCommand       `cmd:"" help:"List the groups with a matching answer, and the versions that were trained on them."`
	State      StateCommand      `cmd:"" help:"Show the state of a run at a position: open groups, figures of the steps, policy versions."`
	Verify     VerifyCommand     `cmd:"" help:"Check the event log of a run for damage and contradictions."`
}

// Mistakes is `codea1 mistakes`.
type Mistakes struct {
	List    ListCommand       `cmd:"" help:"List the tests of the Mistake Book."`
	Show    ShowCommand       `cmd:"" help:"Show the tests of one problem, in the order in which they are posed again."`
	History HistoryCommand    `cmd:"" help:"Show how the counts of a problem's tests changed, and by which answers."`
	Export  ExportBookCommand `cmd:"" help:"Write the whole book as JSONL or parquet."`
	Diff    DiffCommand       `cmd:"" help:"Show the changes of the Mistake Book between two positions."`
}

// runArgument names the run of a command.
type runArgument struct {
	RunDir  string `arg:"" name:"run" help:"Directory of a run, directory of its log, or name of a run in --runs-dir."`
	RunsDir string `help:"Directory of the run directories." default:"runs" placeholder:"DIR"`
}

// read opens the run's log for reading, and closes it after use.
func (a *runArgument) read(logger *slog.Logger, use func(l *eventlog.Log) error) error {
	return a.with(eventlog.Options{ReadOnly: true, Logger: logger}, use)
}

// with opens the run's log, and closes it after use.
func (a *runArgument) with(options eventlog.Options, use func(l *eventlog.Log) error) error {
	l, err := a.open(options)
	if err != nil {
		return err
	}
	return errors.Join(use(l), l.Close())
}

func (a *runArgument) open(options eventlog.Options) (*eventlog.Log, error) {
	for _, dir := range []string{eventlog.Dir(a.RunDir), a.RunDir, eventlog.Dir(filepath.Join(a.RunsDir, a.RunDir))} {
		if eventlog.Exists(dir) {
			return eventlog.Open(dir, options)
		}
	}
	return nil, commandline.Wrong(fmt.Errorf("run %q: %w in %s or %s; `ls %s` lists the runs there",
		a.RunDir, eventlog.ErrNoLog, eventlog.Dir(a.RunDir), eventlog.Dir(filepath.Join(a.RunsDir, a.RunDir)), a.RunsDir))
}

// bookAt returns the Mistake Book at a position. The book at the end is stored
// and need not be computed.
func bookAt(ctx context.Context, l *eventlog.Log, position string) (export.Tests, error) {
	seq, err := query.Position(ctx, l, position)
	if err != nil {
		return nil, err
	}
	if last, _ := l.Last(); seq == last {
		return l.Book(), nil
	}
	return l.BookAt(ctx, seq)
}

// newTable returns a table with left-aligned columns. It keeps its first error and
// returns it from Flush.
func newTable(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0) }

// clip returns text on one line of at most most runes.
func clip(s string, most int) string {
	line := []rune(strings.Join(strings.Fields(s), " "))
	if len(line) <= most {
		return string(line)
	}
	return string(line[:most-3]) + "..."
}

// list returns numbers separated by spaces.
func list(numbers []int) string { return strings.Trim(fmt.Sprint(numbers), "[]") }

// version is a policy version as --json prints it.
type version struct {
	Role    string `json:"role"`
	Version int    `json:"version"`
	URI     string `json:"uri"`
	SHA256  string `json:"sha256"`
}

func versions(newest map[events.Role]*events.PolicyUpdated) []version {
	var all []version
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		if u := newest[role]; u != nil {
			all = append(all, version{string(role), u.Version, u.Checkpoint.URI, u.Checkpoint.SHA256})
		}
	}
	return all
}
