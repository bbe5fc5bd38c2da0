package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"codea1/events"
	"codea1/events/fenced"
	"codea1/replay/eventlog"
)

// Lineage holds all events of one group and the policy versions that trained on
// it. A field is nil if the log does not have the event, or the event cannot be
// decoded.
type Lineage struct {
	Group    string
	Models   events.Models     // of the run; set by Explain
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
// never posed. The IDs of its events derive from each other, so only the few
// policy updates are read through.
func Explain(ctx context.Context, log eventlog.Reader, group string) (*Lineage, error) {
	run, err := eventlog.RunName(ctx, log)
	if err != nil {
		return nil, err
	}
	lineage, err := Group(ctx, log, run, group)
	if err != nil {
		return nil, err
	}
	if lineage.Models, err = eventlog.Models(ctx, log); err != nil {
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
	if err := lineage.follow(ctx, log, eventlog.RootID(run, group, events.TypeProblemPosed)); err != nil {
		return nil, err
	}
	if lineage.Dropped == nil { // the drop of an undecodable event has no cause
		if err := lineage.follow(ctx, log, eventlog.RootID(run, group, events.TypeGroupDropped)); err != nil {
			return nil, err
		}
	}
	if lineage.Posed == nil {
		return nil, lineage.notPosed()
	}
	slices.SortFunc(lineage.Events, func(x, y eventlog.Record) int { return cmp.Compare(x.Seq, y.Seq) })
	return lineage, nil
}

// ErrUnreadable is returned for a group with a problem.posed event that cannot be
// decoded.
var ErrUnreadable = errors.New("its problem cannot be decoded")

// notPosed returns the reason why there is no problem.
func (g *Lineage) notPosed() error {
	for i := range g.Events {
		if r := &g.Events[i]; r.Message.Type == events.TypeProblemPosed {
			return fmt.Errorf("group %s: event %d: %w", g.Group, r.Seq, ErrUnreadable)
		}
	}
	return fmt.Errorf("group %s: %w", g.Group, eventlog.ErrNotFound)
}

// ErrPlan is returned for an event with another plan than its group's problem:
// their numbers of answers and suites would not match.
var ErrPlan = errors.New("its plan is not the one that its group was posed with")

// follow adds the event with an ID and all its descendants. The depth is bounded:
// an ID is a hash of its cause's ID, so a type occurs once in a chain.
func (g *Lineage) follow(ctx context.Context, log eventlog.Reader, id string) error {
	r, err := log.Get(ctx, id)
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	g.Events = append(g.Events, r)
	e, err := r.Decode()
	if eventlog.IsUnreadable(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if plan, ok := events.PlanOf(e.Payload); ok && g.Posed != nil && plan != g.Posed.Plan {
		return fmt.Errorf("event %d (%s) of group %s: %w", r.Seq, r.Message.ID, g.Group, ErrPlan)
	}
	switch p := e.Payload.(type) {
	case *events.ProblemPosed:
		g.Posed = p
	case *events.CodeSampled:
		g.Code = p
	case *events.TestsSampled:
		g.Tests = p
	case *events.CodeExecuted:
		g.Executed = p
	case *events.GroupRewarded:
		g.Rewarded = p
	case *events.GroupDropped:
		g.Dropped = p
	case *events.EvalScored:
		g.Scored = p
	}
	for _, t := range events.Types() {
		if err := g.follow(ctx, log, events.DeriveID(id, t)); err != nil {
			return err
		}
	}
	return nil
}

// AnswerTokens returns the number of tokens of an answer, also of a compacted
// one.
func (g *Lineage) AnswerTokens(m int) int {
	for i := range g.Events {
		r := &g.Events[i]
		if r.Compacted && r.Message.Type == events.TypeCodeSampled && m < len(r.Tokens) {
			return r.Tokens[m]
		}
	}
	return len(g.Code.Answers[m].Tokens)
}

// AnswerCode returns the code in an answer, as it was run; empty if the log does not have
// the answer.
func (g *Lineage) AnswerCode(m int) string {
	switch {
	case g.Tests != nil:
		return g.Tests.Codes[m]
	case g.Code != nil:
		return fenced.Code(g.Code.Answers[m].Text)
	}
	return ""
}

// Executed returns the verdicts from which a rewarded group follows.
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
		return nil, fmt.Errorf("event %d is not %s: %w", cause.Seq, events.TypeCodeExecuted, eventlog.ErrNotFound)
	}
	return executed, nil
}
