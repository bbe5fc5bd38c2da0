package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	"codea1/events"
	"codea1/replay/audit"
	"codea1/replay/eventlog"
	"codea1/replay/export"
	"codea1/replay/fork"
)

// VerifyCommand is `codea1 replay verify`.
type VerifyCommand struct {
	runArgument
	JSON bool `name:"json" help:"Print the report as one JSON object."`
}

// namedQuarantine is the number of quarantined messages that verify names.
const namedQuarantine = 10

// verified is a report as --json prints it.
type verified struct {
	Log string `json:"log"`
	eventlog.Report
	Origins []originJSON  `json:"origins,omitempty"` // the log begins with events of these runs
	Audit   *audit.Report `json:"audit"`
}

// FindingsError says that a log is not damaged, but its events contradict each
// other.
type FindingsError struct {
	Found    uint64
	Findings []audit.Finding // the first of them
}

func (e *FindingsError) Error() string {
	return fmt.Sprintf("the events of the run contradict each other in %d places, first %v", e.Found, e.Findings[0])
}

// Run checks the log. It returns an *eventlog.CorruptError for the first damage, a
// *fork.OriginError for a fork that does not share the events that it names, or a
// *FindingsError for contradictions.
func (c *VerifyCommand) Run(ctx context.Context, out io.Writer, logger *slog.Logger, parent *Command) error {
	l, err := c.open(eventlog.Options{ReadOnly: true, Logger: logger})
	if err != nil {
		return err
	}
	total, _ := l.Last()
	meter := newMeter("verifying", total)
	report, err := l.Verify(ctx, meter.at)
	meter.finish()
	var audited audit.Report
	if err == nil {
		meter := newMeter("auditing", total)
		audited, err = audit.Check(ctx, l, parent.Recipes, meter.at)
		meter.finish()
	}
	var some []eventlog.Quarantined
	for q, qErr := range l.Quarantined(ctx) {
		if err = errors.Join(err, qErr); err != nil || len(some) == namedQuarantine {
			break
		}
		some = append(some, q)
	}
	var origins []events.Origin
	if err == nil {
		origins, err = fork.CheckOrigins(ctx, l)
	}
	if err := errors.Join(err, l.Close()); err != nil {
		return err
	}
	if err := c.print(out, l.Dir(), &report, some, &audited, origins); err != nil {
		return err
	}
	if audited.Found > 0 {
		return &FindingsError{audited.Found, audited.Findings}
	}
	return nil
}

func (c *VerifyCommand) print(out io.Writer, dir string, r *eventlog.Report, some []eventlog.Quarantined, h *audit.Report, origins []events.Origin) error {
	if c.JSON {
		v := verified{Log: dir, Report: *r, Audit: h}
		for _, o := range origins {
			v.Origins = append(v.Origins, originJSON(o))
		}
		return export.NewLines(out).Encode(&v)
	}
	table := newTable(out)
	fmt.Fprintf(table, "log\t%s\n", dir)
	fmt.Fprintf(table, "events\t%d, each once and without a gap\n", r.Events)
	for _, t := range slices.Sorted(maps.Keys(r.ByType)) {
		fmt.Fprintf(table, "  %s\t%d\n", t, r.ByType[t])
	}
	fmt.Fprintf(table, "left out\t%d descend from a payload that does not stand\n", r.Refused)
	fmt.Fprintf(table, "quarantine\t%s\n", quarantineRow(&r.Quarantine))
	for i := range some {
		q := &some[i]
		fmt.Fprintf(table, "\tmessage %d after event %d: %s %s: %s\n", q.Number, q.After, harmless(string(q.Type)), harmless(q.Group+q.Place), harmless(q.Reason))
	}
	if r.Compacted > 0 {
		fmt.Fprintf(table, "compacted\t%d payloads are without their token ids and log-probs\n", r.Compacted)
	}
	fmt.Fprintf(table, "hash chain\tintact, ends with %s\n", r.Chain)
	for _, o := range origins {
		fmt.Fprintf(table, "origin\tthe first %d events are those of run %s, chain hash %s\n", o.Events, o.Run, o.Chain)
	}
	fmt.Fprintf(table, "mistake book\t%d tests of %d problems, as rebuilt from the events\n", r.Tests, r.Problems)
	fmt.Fprintf(table, "groups\t%d rewarded, %d scored, %d dropped, %d open\n", h.Rewarded, h.Scored, h.Dropped, h.Open)
	fmt.Fprintf(table, "policy versions\t%d\n", h.Versions)
	fmt.Fprintf(table, "rewards\t%d recomputed from their verdicts\n", h.Recomputed)
	if h.Found == 0 {
		fmt.Fprintf(table, "audit\tevery effect has its cause, every group ends once and is trained once\n")
	} else {
		fmt.Fprintf(table, "audit\twrong in %d places\n", h.Found)
	}
	for _, f := range h.Findings {
		fmt.Fprintf(table, "\t%v\n", f)
	}
	return table.Flush()
}
