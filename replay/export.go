package replay

import (
	"context"
	"errors"
	"fmt"
	"io"

	"codea1/events"
)

// Tables that can be exported.
const (
	tableEvents  = "events"  // EventRow, one per event
	tableAnswers = "answers" // AnswerRow, one per answer that was executed
	tableTests   = "tests"   // TestRow, one per test of a suite
	tableGolden  = "golden"  // GoldenRow, one per problem
)

// exporter writes a table of a log while it reads it.
type exporter struct {
	log       *Log
	selection Selection
	format    string
	out       io.Writer
	progress  func(done uint64)
}

func (x *exporter) export(ctx context.Context, table string) error {
	switch table {
	case tableEvents:
		return exportRecords(ctx, x, x.selection.Types, func(r *Record) ([]EventRow, error) {
			row, err := eventRow(r)
			return []EventRow{row}, err
		})
	case tableAnswers:
		return exportGroups(ctx, x, answerRows)
	case tableTests:
		return exportGroups(ctx, x, testRows)
	case tableGolden:
		return x.exportGolden(ctx)
	}
	return fmt.Errorf("no table %q", table)
}

// each calls visit for every selected event of the types.
func (x *exporter) each(ctx context.Context, types []events.Type, visit func(*Record) error) error {
	for r, err := range x.log.Scan(ctx, ScanOptions{Types: types}) {
		if err != nil {
			return err
		}
		if x.progress != nil {
			x.progress(r.Seq)
		}
		if !x.selection.selects(&r.Message) {
			continue
		}
		if err := visit(&r); err != nil {
			return err
		}
	}
	return nil
}

func exportRecords[T any](ctx context.Context, x *exporter, types []events.Type, rows func(*Record) ([]T, error)) error {
	w := newRowWriter[T](x.format, x.out)
	err := x.each(ctx, types, func(r *Record) error {
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
func exportGroups[T any](ctx context.Context, x *exporter, rows func(*Lineage) []T) error {
	return exportRecords(ctx, x, []events.Type{events.TypeCodeExecuted}, func(r *Record) ([]T, error) {
		lineage, err := x.executed(ctx, r)
		if lineage == nil || err != nil {
			return nil, err
		}
		return rows(lineage), nil
	})
}

// executed returns the lineage of an executed group; nil if nobody can read its
// question or its verdicts.
func (x *exporter) executed(ctx context.Context, r *Record) (*Lineage, error) {
	lineage, err := x.log.groupLineage(ctx, r.Message.Run, r.Message.Group)
	if errors.Is(err, errUnreadable) {
		return nil, nil
	}
	if err != nil || lineage.Executed == nil {
		return nil, err
	}
	return lineage, nil
}

func (x *exporter) exportGolden(ctx context.Context) error {
	set := newGoldenSet()
	run := ""
	err := x.each(ctx, []events.Type{events.TypeCodeExecuted}, func(r *Record) error {
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
	w := newRowWriter[GoldenRow](x.format, x.out)
	if err := w.write(set.rows(run)...); err != nil {
		return err
	}
	return w.close()
}
