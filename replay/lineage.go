package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"codea1/events"
)

// Lineage is everything the log holds about one group: how it was posed,
// answered, tested, executed and rewarded, and what learnt from it. What the
// group has not reached is nil.
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
	root := events.New(run, group, "replay", time.Time{}, &events.ProblemPosed{}).ID
	if err := l.follow(ctx, lineage, root); err != nil {
		return nil, err
	}
	if lineage.Posed == nil {
		return nil, fmt.Errorf("group %s: %w", group, ErrNotFound)
	}
	slices.SortFunc(lineage.Events, func(x, y Record) int { return cmp.Compare(x.Seq, y.Seq) })
	return lineage, nil
}

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
	e, err := r.Decode()
	if err != nil {
		return err
	}
	lineage.Events = append(lineage.Events, r)
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
