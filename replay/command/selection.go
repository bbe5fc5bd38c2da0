package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"codea1/events"
	"codea1/events/commandline"
	"codea1/replay/eventlog"
	"codea1/replay/query"
)

// selectionFlags are the filters that commands share.
type selectionFlags struct {
	Type  []events.Type `help:"Only events of these types." placeholder:"TYPE"`
	Group []string      `help:"Only these groups." placeholder:"GROUP"`
	Step  string        `help:"Only training steps N, or N-M." placeholder:"N-M"`
	Since time.Time     `help:"Only events of this time or later, RFC 3339." placeholder:"TIME"`
	Until time.Time     `help:"Only events before this time, RFC 3339." placeholder:"TIME"`
}

// checkGroups refuses a group that is not in the log.
func checkGroups(ctx context.Context, l *eventlog.Log, groups []string) error {
	if len(groups) == 0 {
		return nil
	}
	run, err := eventlog.RunName(ctx, l)
	if err != nil {
		return err
	}
	for _, group := range groups {
		found := false
		for _, t := range []events.Type{events.TypeProblemPosed, events.TypeGroupDropped, events.TypePolicyUpdated, events.TypeRunStarted, events.TypeRunFinished} {
			switch _, err := l.Get(ctx, eventlog.RootID(run, group, t)); {
			case err == nil:
				found = true
			case !errors.Is(err, eventlog.ErrNotFound):
				return err
			}
		}
		if !found {
			return commandline.Wrong(fmt.Errorf("--group %s: %w; `codea1 replay explain RUN --step N` lists the groups of a step", group, eventlog.ErrNotFound))
		}
	}
	return nil
}

func (f *selectionFlags) selection() (query.Selection, error) {
	s := query.Selection{Types: f.Type, Groups: f.Group, Since: f.Since, Until: f.Until}
	for _, t := range f.Type {
		if events.CurrentVersion(t) == 0 {
			return s, commandline.Wrong(fmt.Errorf("--type: %w %q; known are %v", events.ErrUnknownType, t, events.Types()))
		}
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return s, commandline.Wrong(fmt.Errorf("--since %s is not before --until %s", f.Since.Format(time.RFC3339), f.Until.Format(time.RFC3339)))
	}
	if f.Step == "" {
		return s, nil
	}
	first, last, ranged := strings.Cut(f.Step, "-")
	if !ranged {
		last = first
	}
	var err error
	if s.FromStep, err = strconv.Atoi(first); err == nil {
		s.ToStep, err = strconv.Atoi(last)
	}
	if err != nil || s.FromStep < 1 || s.ToStep < s.FromStep {
		return s, commandline.Wrong(fmt.Errorf("--step %q: want a step, or the first and the last as N-M, from 1", f.Step))
	}
	return s, nil
}
