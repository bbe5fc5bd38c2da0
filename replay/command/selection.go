package command

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"codea1/events"
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

func (f *selectionFlags) selection() (query.Selection, error) {
	s := query.Selection{Types: f.Type, Groups: f.Group, Since: f.Since, Until: f.Until}
	for _, t := range f.Type {
		if events.CurrentVersion(t) == 0 {
			return s, fmt.Errorf("--type: %w %q; known are %v", events.ErrUnknownType, t, events.Types())
		}
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return s, fmt.Errorf("--since %s is not before --until %s", f.Since.Format(time.RFC3339), f.Until.Format(time.RFC3339))
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
		return s, fmt.Errorf("--step %q: want a step, or the first and the last as N-M, from 1", f.Step)
	}
	return s, nil
}
