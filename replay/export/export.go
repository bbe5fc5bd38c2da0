package export

import (
	"context"
	"errors"
	"fmt"
	"io"

	"codea1/events"
	"codea1/replay/eventlog"
	"codea1/replay/mistakes"
	"codea1/replay/query"
)

// Tables that can be exported.
const (
	TableEvents   = "events"   // EventRow, one per event
	TableAnswers  = "answers"  // AnswerRow, one per executed answer
	TableTests    = "tests"    // TestRow, one per test of a suite
	TableGolden   = "golden"   // GoldenRow, one per problem
	TableHardened = "hardened" // GoldenRow, one per problem with enough tests that tell answers apart
	TablePairs    = "pairs"    // PairRow, one per pair of answers with different pass rates
)

// Exporter writes tables of a log while it reads the log.
type Exporter struct {
	Log       eventlog.Reader
	Selection query.Selection
	Format    string
	Out       io.Writer
	Progress  func(done uint64) // nil disables it
}

// Export writes a table.
func (x *Exporter) Export(ctx context.Context, table string) error {
	switch table {
	case TableEvents:
		return writeRows(x.Format, x.Out, func(write func(...EventRow) error) error {
			return x.each(ctx, x.Selection.Types, func(r *eventlog.Record) error {
				row, err := NewEventRow(r)
				if err != nil {
					return err
				}
				return write(row)
			})
		})
	case TableAnswers:
		return writeRows(x.Format, x.Out, func(write func(...AnswerRow) error) error {
			return x.eachGroup(ctx, func(_ string, g *query.Lineage) error { return write(answerRows(g)...) })
		})
	case TableTests:
		return writeRows(x.Format, x.Out, func(write func(...TestRow) error) error {
			return x.eachGroup(ctx, func(_ string, g *query.Lineage) error { return write(testRows(g)...) })
		})
	case TableGolden:
		return writeRows(x.Format, x.Out, func(write func(...GoldenRow) error) error {
			set := newGoldenSet()
			name, err := x.eachTrained(ctx, set.add)
			if err != nil {
				return err
			}
			return write(set.rows(name)...)
		})
	case TableHardened:
		return writeRows(x.Format, x.Out, func(write func(...GoldenRow) error) error {
			set := newHardenedSet()
			name, err := x.eachTrained(ctx, set.add)
			if err != nil {
				return err
			}
			rows, err := set.rows(name)
			if err != nil {
				return err
			}
			return write(rows...)
		})
	case TablePairs:
		return writeRows(x.Format, x.Out, func(write func(...PairRow) error) error {
			none := true
			err := x.eachGroup(ctx, func(_ string, g *query.Lineage) error {
				if g.Posed.Plan.Purpose != events.PurposeTrain {
					return nil
				}
				rows := pairRows(g)
				none = none && len(rows) == 0
				return write(rows...)
			})
			if err == nil && none {
				err = ErrNoPairs
			}
			return err
		})
	}
	return fmt.Errorf("table %q is unknown; use %s, %s, %s, %s, %s or %s", table, TableEvents, TableAnswers, TableTests, TableGolden, TableHardened, TablePairs)
}

// eachTrained calls visit for every selected training group, and returns the name of
// the run. Held-out problems must not become training problems.
func (x *Exporter) eachTrained(ctx context.Context, visit func(*events.Problem, *events.CodeExecuted)) (run string, err error) {
	err = x.eachGroup(ctx, func(name string, g *query.Lineage) error {
		if run = name; g.Posed.Plan.Purpose == events.PurposeTrain {
			visit(&g.Posed.Problem, g.Executed)
		}
		return nil
	})
	return run, err
}

// each calls visit for every selected event of the types.
func (x *Exporter) each(ctx context.Context, types []events.Type, visit func(*eventlog.Record) error) error {
	for r, err := range x.Log.Read(ctx, eventlog.ReadOptions{Types: types}) {
		if err != nil {
			return err
		}
		if x.Progress != nil {
			x.Progress(r.Seq)
		}
		if !x.Selection.Selects(&r.Message) {
			continue
		}
		if err := visit(&r); err != nil {
			return err
		}
	}
	return nil
}

// eachGroup calls visit for every selected group that was executed. It skips a
// group if its problem or its verdicts cannot be decoded.
func (x *Exporter) eachGroup(ctx context.Context, visit func(run string, g *query.Lineage) error) error {
	return x.each(ctx, []events.Type{events.TypeCodeExecuted}, func(r *eventlog.Record) error {
		g, err := query.Group(ctx, x.Log, r.Message.Run, r.Message.Group)
		if errors.Is(err, query.ErrUnreadable) || err == nil && g.Executed == nil {
			return nil
		}
		if err != nil {
			return err
		}
		return visit(r.Message.Run, g)
	})
}

// Tests is the Mistake Book at the end of a log or at an earlier position.
type Tests interface {
	Problems() []string
	Tests(problemID string) []mistakes.Entry
	Size() int
}

// Book writes the entries of a Mistake Book, by problem, in the order of entry.
func Book(ctx context.Context, book Tests, format string, out io.Writer) error {
	return writeRows(format, out, func(write func(...mistakes.Entry) error) error {
		for _, id := range book.Problems() {
			if err := errors.Join(ctx.Err(), write(book.Tests(id)...)); err != nil {
				return err
			}
		}
		return nil
	})
}
