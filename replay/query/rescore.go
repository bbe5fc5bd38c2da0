package query

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"codea1/events"
	"codea1/replay/eventlog"
	"codea1/replay/mistakes"
)

// Rescored compares the rewards of a run with those under another recipe. It is a
// first-order answer: completions and historical tests are those of the run,
// although another recipe would have led to others.
type Rescored struct {
	Groups      uint64     `json:"groups"`     // compared
	Unscorable  uint64     `json:"unscorable"` // groups that the recipe cannot reward
	Why         string     `json:"why,omitempty"`
	Code        RoleChange `json:"code"`
	Test        RoleChange `json:"test"`
	TopVar      uint64     `json:"top_var_changed"` // groups with another TOPVAR answer
	BookBefore  int        `json:"book_before"`     // tests in the Mistake Book at the end
	BookAfter   int        `json:"book_after"`
	BookEntered int        `json:"book_entered"` // tests that only the other recipe has
	BookLeft    int        `json:"book_left"`    // tests that it does not have
	BookChanged int        `json:"book_changed"` // tests with another count
}

// GroupRescored is one group under both recipes.
type GroupRescored struct {
	Seq           uint64 // of group.rewarded
	Group         string
	Before, After *events.GroupRewarded
	Failure       error // why the other recipe cannot reward the group; After is nil
}

// rescoreBatch is the number of groups that are decoded and scored in parallel.
const rescoreBatch = 64

// Rescore rewards every training group of the log under another recipe and
// compares. visit, unless nil, is called for each group in order; progress, unless
// nil, with its sequence number.
func Rescore(ctx context.Context, log eventlog.Reader, score Score, visit func(*GroupRescored) error, progress func(done uint64)) (Rescored, error) {
	fold := NewComparison()
	var batch []eventlog.Record
	flush := func() error {
		groups, err := rescoreAll(ctx, log, batch, score)
		if err != nil {
			return err
		}
		for i := range groups {
			fold.Add(&groups[i])
			if visit != nil && groups[i].After != nil {
				if err := visit(&groups[i]); err != nil {
					return err
				}
			}
			if progress != nil {
				progress(groups[i].Seq)
			}
		}
		batch = batch[:0]
		return nil
	}
	for r, err := range log.Read(ctx, eventlog.ReadOptions{Types: []events.Type{events.TypeGroupRewarded}}) {
		if err != nil {
			return Rescored{}, err
		}
		if batch = append(batch, r); len(batch) == rescoreBatch {
			if err := flush(); err != nil {
				return Rescored{}, err
			}
		}
	}
	if err := flush(); err != nil {
		return Rescored{}, err
	}
	return fold.Report(), nil
}

// rescoreAll rewards groups on all cores; decoding takes most of the time.
func rescoreAll(ctx context.Context, log eventlog.Reader, batch []eventlog.Record, score Score) ([]GroupRescored, error) {
	groups := make([]GroupRescored, len(batch))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(runtime.GOMAXPROCS(0))
	for i := range batch {
		work.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			e, err := batch[i].Decode()
			if err != nil {
				return err
			}
			executed, err := Executed(ctx, log, e)
			if err != nil {
				return fmt.Errorf("verdicts of event %d: %w", batch[i].Seq, err)
			}
			g := &groups[i]
			g.Seq, g.Group, g.Before = batch[i].Seq, e.Group, e.Payload.(*events.GroupRewarded)
			g.After, g.Failure = score(executed)
			return nil
		})
	}
	return groups, work.Wait()
}

// Comparison computes a Rescored from groups.
type Comparison struct {
	report        Rescored
	before, after *mistakes.Book
}

// NewComparison returns a Comparison without a group.
func NewComparison() *Comparison {
	return &Comparison{before: mistakes.New(), after: mistakes.New()}
}

// Add adds a group. The changes of the Mistake Book depend on the order of the groups.
func (f *Comparison) Add(g *GroupRescored) {
	f.before.Apply(g.Before)
	if g.After == nil {
		if f.report.Unscorable++; f.report.Why == "" {
			f.report.Why = fmt.Sprintf("%s: %v", g.Group, g.Failure)
		}
		return
	}
	f.after.Apply(g.After)
	f.report.Groups++
	if g.Before.TopVar != g.After.TopVar {
		f.report.TopVar++
	}
	f.report.Code.Compare(Answers(g.Before), Answers(g.After))
	f.report.Code.keep(trains(Answers(g.Before)), trains(Answers(g.After)))
	for m := range g.Before.Test {
		f.report.Test.Compare(Suites(g.Before, m), Suites(g.After, m))
	}
	f.report.Test.keep(trains(Suites(g.Before, g.Before.TopVar)), trains(Suites(g.After, g.After.TopVar)))
}

// Report returns the comparison of the groups so far.
func (f *Comparison) Report() Rescored {
	report := f.report
	report.Code.End()
	report.Test.End()
	report.BookBefore, report.BookAfter = f.before.Size(), f.after.Size()
	for _, c := range mistakes.Diff(f.before, f.after) {
		switch {
		case c.Before == 0:
			report.BookEntered++
		case c.Count == 0:
			report.BookLeft++
		default:
			report.BookChanged++
		}
	}
	return report
}
