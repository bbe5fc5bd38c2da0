package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"codea1/events"
	"codea1/replay/eventlog"
)

// Lineage is everything the log holds about one group: how it was posed,
// answered, tested, executed and rewarded, and what learnt from it. What the
// group has not reached, and what nobody can read, is nil.
type Lineage struct {
	Group    string
	Events   []eventlog.Record // of the group, in the order of the log
	Posed    *events.ProblemPosed
	Code     *events.CodeSampled
	Tests    *events.TestsSampled
	Executed *events.CodeExecuted
	Rewarded *events.GroupRewarded
	Dropped  *events.GroupDropped
	Scored   *events.EvalScored
	Updates  []*events.PolicyUpdated // versions that trained on the group
}

// Explain returns the lineage of a group, or ErrNotFound for a group that was
// never posed. An event's ID follows from its cause, so no scan is needed; only
// the policy updates, few and small, are read through.
func Explain(ctx context.Context, log eventlog.Reader, group string) (*Lineage, error) {
	run, err := eventlog.RunName(ctx, log)
	if err != nil {
		return nil, err
	}
	lineage, err := Group(ctx, log, run, group)
	if err != nil {
		return nil, err
	}
	updates, err := eventlog.Updates(ctx, log)
	if err != nil {
		return nil, err
	}
	for _, u := range updates {
		if slices.Contains(u.Groups, group) {
			lineage.Updates = append(lineage.Updates, u)
		}
	}
	return lineage, nil
}

// Group is Explain without the updates.
func Group(ctx context.Context, log eventlog.Reader, run, group string) (*Lineage, error) {
	if err := events.ValidName(group); err != nil {
		return nil, fmt.Errorf("group %q: %w", group, eventlog.ErrNotFound)
	}
	lineage := &Lineage{Group: group}
	if err := follow(ctx, log, lineage, eventlog.RootID(run, group, events.TypeProblemPosed)); err != nil {
		return nil, err
	}
	if lineage.Dropped == nil { // what cannot be read is no cause: its drop has none
		if err := follow(ctx, log, lineage, eventlog.RootID(run, group, events.TypeGroupDropped)); err != nil {
			return nil, err
		}
	}
	if lineage.Posed == nil {
		return nil, lineage.notPosed()
	}
	slices.SortFunc(lineage.Events, func(x, y eventlog.Record) int { return cmp.Compare(x.Seq, y.Seq) })
	return lineage, nil
}

// ErrUnreadable is returned for a group whose question nobody can read.
var ErrUnreadable = errors.New("nobody can read its question")

// notPosed says why there is no question.
func (g *Lineage) notPosed() error {
	for i := range g.Events {
		if r := &g.Events[i]; r.Message.Type == events.TypeProblemPosed {
			return fmt.Errorf("group %s: event %d: %w", g.Group, r.Seq, ErrUnreadable)
		}
	}
	return fmt.Errorf("group %s: %w", g.Group, eventlog.ErrNotFound)
}

// ErrPlan is returned for an event that tells of another plan than its group's
// question: numbers of answers and suites would not fit each other.
var ErrPlan = errors.New("its plan is not the one that its group was posed with")

// follow adds the event with an ID and all that follows from it. The depth is
// bounded: a type occurs once on a way, since IDs are hashes of those before.
func follow(ctx context.Context, log eventlog.Reader, lineage *Lineage, id string) error {
	r, err := log.Get(ctx, id)
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	lineage.Events = append(lineage.Events, r)
	e, err := r.Decode()
	if eventlog.IsUnreadable(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if plan, ok := events.PlanOf(e.Payload); ok && lineage.Posed != nil && plan != lineage.Posed.Plan {
		return fmt.Errorf("event %d (%s) of group %s: %w", r.Seq, r.Message.ID, lineage.Group, ErrPlan)
	}
	switch p := e.Payload.(type) {
	case *events.ProblemPosed:
		lineage.Posed = p
	case *events.CodeSampled:
		lineage.Code = p
	case *events.TestsSampled:
		lineage.Tests = p
	case *events.CodeExecuted:
		lineage.Executed = p
	case *events.GroupRewarded:
		lineage.Rewarded = p
	case *events.GroupDropped:
		lineage.Dropped = p
	case *events.EvalScored:
		lineage.Scored = p
	}
	for _, t := range events.Types() {
		if err := follow(ctx, log, lineage, events.DeriveID(id, t)); err != nil {
			return err
		}
	}
	return nil
}

// AnswerTokens returns how many tokens an answer of a group had.
func (g *Lineage) AnswerTokens(m int) int {
	for i := range g.Events {
		r := &g.Events[i]
		if r.Compacted && r.Message.Type == events.TypeCodeSampled && m < len(r.Tokens) {
			return r.Tokens[m]
		}
	}
	return len(g.Code.Answers[m].Tokens)
}

// Executed returns the verdicts that a rewarded group follows from.
func Executed(ctx context.Context, log eventlog.Reader, rewarded *events.Event) (*events.CodeExecuted, error) {
	cause, err := log.Get(ctx, rewarded.CausationID)
	if err != nil {
		return nil, err
	}
	e, err := cause.Decode()
	if err != nil {
		return nil, err
	}
	executed, ok := e.Payload.(*events.CodeExecuted)
	if !ok {
		return nil, fmt.Errorf("event %d is no %s: %w", cause.Seq, events.TypeCodeExecuted, eventlog.ErrNotFound)
	}
	return executed, nil
}
