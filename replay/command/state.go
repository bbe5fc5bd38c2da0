package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"codea1/events"
	"codea1/replay/eventlog"
	"codea1/replay/export"
	"codea1/replay/query"
	"codea1/replay/state"
)

// StateCommand is `codea1 replay state`.
type StateCommand struct {
	runArgument
	At    string `help:"Position: step:N, an event's number, start or end." placeholder:"POSITION" default:"end"`
	Steps int    `help:"Number of last steps to show; 0 shows all." default:"10" min:"0" placeholder:"N"`
	JSON  bool   `name:"json" help:"Print the whole state as one JSON object."`
}

// stateJSON is the state as --json prints it.
type stateJSON struct {
	Log         string            `json:"log"`
	Position    uint64            `json:"position"`
	Trained     int               `json:"trained"`
	Cursor      state.Cursor      `json:"cursor"`
	Metrics     state.Metrics     `json:"metrics"`
	Checkpoints state.Checkpoints `json:"checkpoints"`
	Tests       int               `json:"tests"` // in the Mistake Book
	// Quarantine counts the messages at the end of the log that are no events.
	Quarantine eventlog.Quarantine `json:"quarantine"`
}

// Run prints the state of a run.
func (c *StateCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	var report *stateJSON
	err := c.read(logger, func(l *eventlog.Log) (err error) {
		report, err = c.report(ctx, l)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return export.NewLines(out).Encode(report)
	}
	return report.print(out, c.Steps)
}

func (c *StateCommand) report(ctx context.Context, l *eventlog.Log) (*stateJSON, error) {
	seq, err := query.Position(ctx, l, c.At)
	if err != nil {
		return nil, err
	}
	s, err := l.StateAt(ctx, seq)
	if err != nil {
		return nil, err
	}
	book, err := l.BookAt(ctx, seq)
	if err != nil {
		return nil, err
	}
	return &stateJSON{l.Dir(), seq, s.Cursor.Trained(), s.Cursor, s.Metrics, s.Checkpoints, book.Size(), l.Quarantine()}, nil
}

func (r *stateJSON) print(out io.Writer, steps int) error {
	if r.Position == 0 {
		_, err := fmt.Fprintf(out, "log %s: no event yet\n", r.Log)
		return err
	}
	table := newTable(out)
	fmt.Fprintf(table, "log\t%s, after event %d\n", r.Log, r.Position)
	c := &r.Cursor
	fmt.Fprintf(table, "trained\tstep %d of %d (code %d, test %d), attempt %d%s%s\n", r.Trained, c.Planned, c.Code, c.Test, c.Attempt-c.Inherited, ofFork(c), ended(c.Finished))
	fmt.Fprintf(table, "open\t%s\n", listed(c.Open()))
	for _, tag := range slices.Sorted(maps.Keys(r.Metrics.Evaluations)) {
		x := r.Metrics.Evaluations[tag]
		fmt.Fprintf(table, "evaluation %s\t%d posed, %d scored, %d dropped; %d of %d answers correct, %d of %d tests right as stated, defects found by %d of %d suites",
			tag, x.Posed, x.Scored, x.Dropped, x.Correct, x.Answers, x.Right, x.Stated, x.Found, x.Defective)
		if x.Kept+x.Searched > 0 {
			fmt.Fprintf(table, " and reached by %d of %d; %d of %d kept inputs trivial", x.Reached, x.Searched, x.Trivial, x.Kept)
		}
		fmt.Fprintln(table)
	}
	fmt.Fprintf(table, "mistake book\t%d tests\n", r.Tests)
	fmt.Fprintf(table, "quarantine\t%s\n", quarantineRow(&r.Quarantine))
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		if v := r.Checkpoints.Newest(role); v != nil {
			fmt.Fprintf(table, "%s v%d\t%s (event %d)\n\tsha256 %s\n", role, v.Version, v.URI, v.Seq, v.SHA256)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return r.printSteps(out, steps)
}

func (r *stateJSON) printSteps(out io.Writer, most int) error {
	steps := slices.Sorted(maps.Keys(r.Metrics.Steps))
	if most > 0 && len(steps) > most {
		steps = steps[len(steps)-most:]
	}
	if len(steps) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\nSTEP\tPOSED\tREWARDED\tDROPPED\tCODE REWARD\tTEST REWARD\tPASSED\tLOADS\tKEPT\tWRONG OR DISCARDED\tENTERED\tLEFT\t")
	for _, step := range steps {
		s := r.Metrics.Steps[step]
		fmt.Fprintf(table, "%d\t%d\t%d\t%d\t%.4f\t%.4f\t%.4f\t%d/%d\t%d\t%d\t%d\t%d\t\n", step, s.Posed, s.Rewarded, s.Dropped,
			s.Code.Value(), s.Test.Value(), s.Passed.Value(), s.Loads, s.Code.N, s.Kept, s.WrongOrDiscarded, s.Entered, s.Left)
	}
	return table.Flush()
}

func ended(reason string) string {
	if reason == "" {
		return ", not finished"
	}
	return ", " + reason
}

// listed names the first groups.
func listed(groups []string) string {
	const most = 4
	switch {
	case len(groups) == 0:
		return "no group"
	case len(groups) == 1:
		return groups[0]
	case len(groups) > most:
		return fmt.Sprintf("%d groups: %s and others", len(groups), strings.Join(groups[:most], ", "))
	}
	return fmt.Sprintf("%d groups: %s", len(groups), strings.Join(groups, ", "))
}

// ofFork says how the log numbers the attempts of a fork; nothing for another run.
func ofFork(c *state.Cursor) string {
	if c.Inherited == 0 {
		return ""
	}
	return fmt.Sprintf(" of the fork (%d in the log, with those of its origin)", c.Attempt)
}
