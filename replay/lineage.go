package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"codea1/events"
)

// Lineage is everything the log holds about one group: how it was posed,
// answered, tested, executed and rewarded, and what learnt from it. What the
// group has not reached, and what nobody can read, is nil.
type Lineage struct {
	Group    string
	Events   []Record // of the group, in the order of the log
	Posed    *events.ProblemPosed
	Code     *events.CodeSampled
	Tests    *events.TestsSampled
	Executed *events.CodeExecuted
	Rewarded *events.GroupRewarded
	Dropped  *events.GroupDropped
	Scored   *events.EvalScored
	Updates  []*events.PolicyUpdated // versions that trained on the group
}

// Lineage returns the lineage of a group, or ErrNotFound for a group that was
// never posed. An event's ID follows from its cause, so no scan is needed; only
// the policy updates, few and small, are read through.
func (l *Log) Lineage(ctx context.Context, group string) (*Lineage, error) {
	run, err := l.run(ctx)
	if err != nil {
		return nil, err
	}
	lineage, err := l.groupLineage(ctx, run, group)
	if err != nil {
		return nil, err
	}
	updates, err := l.Updates(ctx)
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

// groupLineage is Lineage without the updates.
func (l *Log) groupLineage(ctx context.Context, run, group string) (*Lineage, error) {
	if err := events.ValidName(group); err != nil {
		return nil, fmt.Errorf("group %q: %w", group, ErrNotFound)
	}
	lineage := &Lineage{Group: group}
	if err := l.follow(ctx, lineage, rootID(run, group, events.TypeProblemPosed)); err != nil {
		return nil, err
	}
	if lineage.Dropped == nil { // what cannot be read is no cause: its drop has none
		if err := l.follow(ctx, lineage, rootID(run, group, events.TypeGroupDropped)); err != nil {
			return nil, err
		}
	}
	if lineage.Posed == nil {
		return nil, lineage.notPosed()
	}
	slices.SortFunc(lineage.Events, func(x, y Record) int { return cmp.Compare(x.Seq, y.Seq) })
	return lineage, nil
}

// errUnreadable is returned for a group whose question nobody can read.
var errUnreadable = errors.New("nobody can read its question")

// notPosed says why there is no question.
func (g *Lineage) notPosed() error {
	for i := range g.Events {
		if r := &g.Events[i]; r.Message.Type == events.TypeProblemPosed {
			return fmt.Errorf("group %s: event %d: %w", g.Group, r.Seq, errUnreadable)
		}
	}
	return fmt.Errorf("group %s: %w", g.Group, ErrNotFound)
}

// errPlan is returned for an event that tells of another plan than its group's
// question: numbers of answers and suites would not fit each other.
var errPlan = errors.New("its plan is not the one that its group was posed with")

// follow adds the event with an ID and all that follows from it. The depth is
// bounded: a type occurs once on a way, since IDs are hashes of those before.
func (l *Log) follow(ctx context.Context, lineage *Lineage, id string) error {
	r, err := l.Get(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	lineage.Events = append(lineage.Events, r)
	e, err := r.Decode()
	if isUnreadable(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if plan, ok := events.PlanOf(e.Payload); ok && lineage.Posed != nil && plan != lineage.Posed.Plan {
		return fmt.Errorf("event %d (%s) of group %s: %w", r.Seq, r.Message.ID, lineage.Group, errPlan)
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
		if err := l.follow(ctx, lineage, events.DeriveID(id, t)); err != nil {
			return err
		}
	}
	return nil
}

// run returns the name of the run the log is of.
func (l *Log) run(ctx context.Context) (string, error) {
	for r, err := range l.Scan(ctx, ScanOptions{}) {
		return r.Message.Run, err
	}
	return "", fmt.Errorf("log %s is empty: %w", l.dir, ErrNotFound)
}

// Updates returns the policy versions of a run, in the order of the log.
func (l *Log) Updates(ctx context.Context) ([]*events.PolicyUpdated, error) {
	var updates []*events.PolicyUpdated
	for r, err := range l.Scan(ctx, ScanOptions{Types: []events.Type{events.TypePolicyUpdated}}) {
		if err != nil {
			return nil, err
		}
		e, err := r.Decode()
		if err != nil {
			return nil, err
		}
		updates = append(updates, e.Payload.(*events.PolicyUpdated))
	}
	return updates, nil
}
