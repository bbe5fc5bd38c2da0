package command

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"codea1/replay/eventlog"
	"codea1/replay/export"
	"codea1/replay/fork"
	"codea1/replay/query"
)

// Command is `codea1 replay`.
type Command struct {
	// Recipes computes rewards anew; without it verify leaves rewards
	// unchecked and rescore returns ErrNoRecipes.
	Recipes query.Recipes `kong:"-"`
	// Retrainer trains again; without it retrain returns ErrNoRetrainer.
	Retrainer fork.Retrainer `kong:"-"`
	// Host leads to bus and checkpoints; without it fork and restore-bus return
	// ErrNoHost.
	Host fork.Host `kong:"-"`

	Compact    CompactCommand    `cmd:"" help:"Take token ids and log-probs out of the older part of a log, and give their space back."`
	Explain    ExplainCommand    `cmd:"" help:"Tell where a group, or the update of a step, comes from and what it led to."`
	Export     ExportCommand     `cmd:"" help:"Write events, or tables of answers and tests, as JSONL or parquet."`
	Fork       ForkCommand       `cmd:"" help:"Make a new run that shares the beginning of another, for train --resume to go on with."`
	Rebuild    RebuildCommand    `cmd:"" help:"Make a run's log, Mistake Book and configuration anew from its events, in another directory."`
	Rescore    RescoreCommand    `cmd:"" help:"Reward the groups of a run under another recipe, and report what would have changed."`
	Retrain    RetrainCommand    `cmd:"" help:"Train a run's models again from its log, and compare the weights of every version."`
	RestoreBus RestoreBusCommand `cmd:"" name:"restore-bus" help:"Publish the log of a stopped run on a new bus, after a power cut has cost the old one its last events."`
	Scan       ScanCommand       `cmd:"" help:"List the groups with an answer that matches, and the versions they have moved."`
	State      StateCommand      `cmd:"" help:"Show where a run stands, or stood: what is on its way, what the steps came to, which versions there are."`
	Verify     VerifyCommand     `cmd:"" help:"Check the event log of a run from end to end."`
}

// Mistakes is `codea1 mistakes`.
type Mistakes struct {
	List    ListCommand       `cmd:"" help:"List the tests of the Mistake Book."`
	Show    ShowCommand       `cmd:"" help:"Show the tests of one problem, in the order in which they are posed again."`
	History HistoryCommand    `cmd:"" help:"Tell when the tests of a problem entered, what changed them, and when they left."`
	Export  ExportBookCommand `cmd:"" help:"Write the whole book as JSONL or parquet."`
	Diff    DiffCommand       `cmd:"" help:"Show what changed in the Mistake Book between two positions."`
}

// runArgument names the run whose log a command reads.
type runArgument struct {
	RunDir  string `arg:"" name:"run" help:"A run's directory, its log's directory, or the name of a run in --runs-dir."`
	RunsDir string `help:"Where run directories are." default:"runs" placeholder:"DIR"`
}

// open opens the run's log for reading.
func (a *runArgument) open(logger *slog.Logger) (*eventlog.Log, error) {
	return a.openWith(eventlog.Options{ReadOnly: true, Logger: logger})
}

func (a *runArgument) openWith(options eventlog.Options) (*eventlog.Log, error) {
	for _, dir := range []string{eventlog.Dir(a.RunDir), a.RunDir, eventlog.Dir(filepath.Join(a.RunsDir, a.RunDir))} {
		if eventlog.Exists(dir) {
			return eventlog.Open(dir, options)
		}
	}
	return nil, fmt.Errorf("run %q: %w: neither %s nor %s has one",
		a.RunDir, eventlog.ErrNoLog, eventlog.Dir(a.RunDir), eventlog.Dir(filepath.Join(a.RunsDir, a.RunDir)))
}

// bookAt returns the Mistake Book at a position. The book at the end is stored
// and need not be rebuilt.
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
