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

// Rescored says what a run's recorded verdicts would have been worth under
// another recipe. It is a first-order answer: the responses and the historical
// tests are those of the run, though another rule would have led to others.
type Rescored struct {
	Groups      uint64     `json:"groups"`     // compared
	Unscorable  uint64     `json:"unscorable"` // groups the recipe cannot reward
	Why         string     `json:"why,omitempty"`
	Code        RoleChange `json:"code"`
	Test        RoleChange `json:"test"`
	TopVar      uint64     `json:"top_var_changed"` // groups whose TOPVAR chooses another answer
	BookBefore  int        `json:"book_before"`     // tests in the Mistake eventlog.Book at the end
	BookAfter   int        `json:"book_after"`
	BookEntered int        `json:"book_entered"` // tests that only the other rule has
	BookLeft    int        `json:"book_left"`    // tests that it does not have
	BookChanged int        `json:"book_changed"` // tests of another frequency
}

// GroupRescored is one group under both rules.
type GroupRescored struct {
	Seq           uint64 // of group.rewarded
	Group         string
	Before, After *events.GroupRewarded
}

// rescoreBatch is how many groups are decoded and scored side by side.
const rescoreBatch = 64

// Rescore rewards every training group of the log once more and compares. visit,
// unless nil, gets each group in order; progress hears the sequence number.
func Rescore(ctx context.Context, log eventlog.Reader, score Score, visit func(*GroupRescored) error, progress func(done uint64)) (Rescored, error) {
	fold := rescoring{before: mistakes.New(), after: mistakes.New()}
	var batch []eventlog.Record
	flush := func() error {
		groups, err := rescoreAll(ctx, log, batch, score)
		if err != nil {
			return err
		}
		for i := range groups {
			fold.add(&groups[i])
			if visit != nil && groups[i].After != nil {
				if err := visit(&groups[i].GroupRescored); err != nil {
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
	return fold.end(), nil
}

// attempt is a group, and why it could not be rewarded.
type attempt struct {
	GroupRescored
	refusal error
}

// rescoreAll rewards groups on all cores; decoding is what takes the time.
func rescoreAll(ctx context.Context, log eventlog.Reader, batch []eventlog.Record, score Score) ([]attempt, error) {
	groups := make([]attempt, len(batch))
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
			g.After, g.refusal = score(executed)
			return nil
		})
	}
	return groups, work.Wait()
}

// rescoring folds groups into a Rescored.
type rescoring struct {
	report        Rescored
	before, after *mistakes.Book
}

func (f *rescoring) add(g *attempt) {
	f.before.Apply(g.Before)
	if g.After == nil {
		if f.report.Unscorable++; f.report.Why == "" {
			f.report.Why = fmt.Sprintf("%s: %v", g.Group, g.refusal)
		}
		return
	}
	f.after.Apply(g.After)
	f.report.Groups++
	if g.Before.TopVar != g.After.TopVar {
		f.report.TopVar++
	}
	f.report.Code.Compare(AnswersOf(g.Before), AnswersOf(g.After))
	f.report.Code.keep(teaches(AnswersOf(g.Before)), teaches(AnswersOf(g.After)))
	for m := range g.Before.Test {
		f.report.Test.Compare(SuitesOf(g.Before, m), SuitesOf(g.After, m))
	}
	f.report.Test.keep(teaches(SuitesOf(g.Before, g.Before.TopVar)), teaches(SuitesOf(g.After, g.After.TopVar)))
}

func (f *rescoring) end() Rescored {
	f.report.Code.End()
	f.report.Test.End()
	f.report.BookBefore, f.report.BookAfter = f.before.Size(), f.after.Size()
	for _, c := range mistakes.Diff(f.before, f.after) {
		switch {
		case c.Before == 0:
			f.report.BookEntered++
		case c.Count == 0:
			f.report.BookLeft++
		default:
			f.report.BookChanged++
		}
	}
	return f.report
}
