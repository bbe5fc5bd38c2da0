package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"

	"codea1/events/commandline"
	"codea1/replay/eventlog"
	"codea1/replay/export"
	"codea1/replay/query"
)

// ScanCommand is `codea1 replay scan`.
type ScanCommand struct {
	runArgument
	Code  string `help:"Answers with a program that matches this regular expression, for example 'def __eq__'." placeholder:"REGEXP"`
	Text  string `help:"Answers with a completion that matches." placeholder:"REGEXP"`
	Suite string `help:"Answers with a suite that matches." placeholder:"REGEXP"`
	Error string `help:"Answers that do not load, or raise in a test, with an error that matches." placeholder:"REGEXP"`
	Step  string `help:"Only training steps N, or N-M." placeholder:"N-M"`
	JSON  bool   `name:"json" help:"Print one JSON object per line."`
}

var errNoPredicate = commandline.Wrong(errors.New("no expression: give --code, --text, --suite or --error"))

// affectedJSON is a group as --json prints it.
type affectedJSON struct {
	Group   string      `json:"group"`
	Purpose string      `json:"purpose"`
	Step    int         `json:"step"`
	Problem string      `json:"problem"`
	Answers []int       `json:"answers"`
	Moved   []movedJSON `json:"moved"` // versions that trained on the group
}

type movedJSON struct {
	Role    string `json:"role"`
	Version int    `json:"version"`
	SHA256  string `json:"sha256"`
}

// Run lists the groups with a matching answer, and the versions that were trained
// on them.
func (c *ScanCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	predicate, err := c.predicate()
	if err != nil {
		return err
	}
	selection, err := (&selectionFlags{Step: c.Step}).selection()
	if err != nil {
		return err
	}
	visit, end := c.printer(out)
	err = c.read(logger, func(l *eventlog.Log) error {
		total, _ := l.Last()
		meter := newMeter("scanning", total)
		defer meter.finish()
		return query.Find(ctx, l, selection, predicate, visit, meter.at)
	})
	if err != nil {
		return err
	}
	return end()
}

func (c *ScanCommand) predicate() (query.Predicate, error) {
	var p query.Predicate
	if c.Code == "" && c.Text == "" && c.Suite == "" && c.Error == "" {
		return p, errNoPredicate
	}
	for _, x := range []struct {
		flag, text string
		into       **regexp.Regexp
	}{{"code", c.Code, &p.Code}, {"text", c.Text, &p.Text}, {"suite", c.Suite, &p.Suite}, {"error", c.Error, &p.Error}} {
		if x.text == "" {
			continue
		}
		var err error
		if *x.into, err = regexp.Compile(x.text); err != nil {
			return p, commandline.Wrong(fmt.Errorf("--%s: %w", x.flag, err))
		}
	}
	return p, nil
}

// printer returns a function that prints a group, and one that ends the list.
func (c *ScanCommand) printer(out io.Writer) (visit func(*query.Affected) error, end func() error) {
	if c.JSON {
		encoder := export.NewLines(out)
		return func(a *query.Affected) error {
			row := affectedJSON{a.Group, string(a.Plan.Purpose), a.Plan.Step, a.Problem, a.Answers, []movedJSON{}}
			for _, u := range a.Updates {
				row.Moved = append(row.Moved, movedJSON{string(u.Role), u.Version, u.Checkpoint.SHA256})
			}
			return encoder.Encode(&row)
		}, func() error { return nil }
	}
	table := newTable(out)
	groups, answers, steps := 0, 0, make(map[int]bool)
	visit = func(a *query.Affected) error {
		if groups == 0 {
			fmt.Fprintln(table, "GROUP\tPROBLEM\tANSWERS\tTRAINED")
		}
		groups++
		answers += len(a.Answers)
		var moved []string
		for _, u := range a.Updates {
			steps[u.Step] = true
			moved = append(moved, fmt.Sprintf("%s v%d", u.Role, u.Version))
		}
		_, err := fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", a.Group, a.Problem, list(a.Answers), cmp.Or(strings.Join(moved, ", "), "none"))
		return err
	}
	return visit, func() error {
		fmt.Fprintf(table, "%d answers of %d groups, in %d trained steps\n", answers, groups, len(steps))
		return table.Flush()
	}
}
