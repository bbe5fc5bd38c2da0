package export

import (
	"context"
	"errors"
	"fmt"
	"io"

	"codea1/events"
	"codea1/replay/eventlog"
	"codea1/replay/query"
)

// Tables that can be exported.
const (
	TableEvents  = "events"  // EventRow, one per event
	TableAnswers = "answers" // AnswerRow, one per answer that was executed
	TableTests   = "tests"   // TestRow, one per test of a suite
	TableGolden  = "golden"  // GoldenRow, one per problem
)

// Exporter writes tables of a log while it reads the log.
type Exporter struct {
	Log       eventlog.Reader
	Selection query.Selection
	Format    string
	Out       io.Writer
	Progress  func(done uint64) // nil for none
}

// Export writes a table.
func (x *Exporter) Export(ctx context.Context, table string) error {
	switch table {
	case TableEvents:
		return exportRecords(ctx, x, x.Selection.Types, func(r *eventlog.Record) ([]EventRow, error) {
			row, err := NewEventRow(r)
			return []EventRow{row}, err
		})
	case TableAnswers:
		return exportGroups(ctx, x, answerRows)
	case TableTests:
		return exportGroups(ctx, x, testRows)
	case TableGolden:
		return x.exportGolden(ctx)
	}
	return fmt.Errorf("no table %q", table)
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

func exportRecords[T any](ctx context.Context, x *Exporter, types []events.Type, rows func(*eventlog.Record) ([]T, error)) error {
	w := newRowWriter[T](x.Format, x.Out)
	err := x.each(ctx, types, func(r *eventlog.Record) error {
		made, err := rows(r)
		if err != nil {
			return err
		}
		return w.write(made...)
	})
	if err != nil {
		return err
	}
	return w.close()
}

// exportGroups writes rows of every group that was executed.
func exportGroups[T any](ctx context.Context, x *Exporter, rows func(*query.Lineage) []T) error {
	return exportRecords(ctx, x, []events.Type{events.TypeCodeExecuted}, func(r *eventlog.Record) ([]T, error) {
		lineage, err := x.executed(ctx, r)
		if lineage == nil || err != nil {
			return nil, err
		}
		return rows(lineage), nil
	})
}

// executed returns the lineage of an executed group; nil if nobody can read its
// question or its verdicts.
func (x *Exporter) executed(ctx context.Context, r *eventlog.Record) (*query.Lineage, error) {
	lineage, err := query.Group(ctx, x.Log, r.Message.Run, r.Message.Group)
	if errors.Is(err, query.ErrUnreadable) {
		return nil, nil
	}
	if err != nil || lineage.Executed == nil {
		return nil, err
	}
	return lineage, nil
}

func (x *Exporter) exportGolden(ctx context.Context) error {
	set := newGoldenSet()
	run := ""
	err := x.each(ctx, []events.Type{events.TypeCodeExecuted}, func(r *eventlog.Record) error {
		lineage, err := x.executed(ctx, r)
		if lineage == nil || err != nil {
			return err
		}
		// Held-out problems stay held out.
		if run = r.Message.Run; lineage.Posed.Plan.Purpose == events.PurposeTrain {
			set.add(&lineage.Posed.Problem, lineage.Executed)
		}
		return nil
	})
	if err != nil {
		return err
	}
	w := newRowWriter[GoldenRow](x.Format, x.Out)
	if err := w.write(set.rows(run)...); err != nil {
		return err
	}
	return w.close()
}
