package replay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"codea1/events"
	"codea1/replay/state"
)

// Selection chooses events by what their envelopes say, so that what is left
// out need not be decoded. The zero value chooses all.
type Selection struct {
	Types    []events.Type
	Groups   []string
	FromStep int // training steps; 0 is no bound
	ToStep   int
	Since    time.Time // when the event was made; zero is no bound
	Until    time.Time // not included
}

// selects reports whether an event is chosen. With a bound on steps, only
// events that belong to a training step are: groups posed for training, and
// policy versions.
func (s *Selection) selects(m *events.Message) bool {
	if len(s.Types) > 0 && !slices.Contains(s.Types, m.Type) {
		return false
	}
	if len(s.Groups) > 0 && !slices.Contains(s.Groups, m.Group) {
		return false
	}
	if !s.Since.IsZero() && m.Time.Before(s.Since) || !s.Until.IsZero() && !m.Time.Before(s.Until) {
		return false
	}
	if s.FromStep == 0 && s.ToStep == 0 {
		return true
	}
	step, ok := stepOf(m)
	return ok && step >= s.FromStep && (s.ToStep == 0 || step <= s.ToStep)
}

// stepOf reads the training step off an event's group, or off the version that
// a policy.updated event is about.
func stepOf(m *events.Message) (int, bool) {
	if m.Type != events.TypePolicyUpdated {
		return state.TrainingStep(m.Group)
	}
	_, digits, _ := strings.Cut(m.Group, "-v")
	step, err := strconv.Atoi(digits)
	return step, err == nil
}

// selectionFlags are the filters that commands share.
type selectionFlags struct {
	Type  []events.Type `help:"Only events of these types." placeholder:"TYPE"`
	Group []string      `help:"Only these groups." placeholder:"GROUP"`
	Step  string        `help:"Only training steps N, or N-M." placeholder:"N-M"`
	Since time.Time     `help:"Only what was made at this time or later, RFC 3339." placeholder:"TIME"`
	Until time.Time     `help:"Only what was made before this time, RFC 3339." placeholder:"TIME"`
}

func (f *selectionFlags) selection() (Selection, error) {
	s := Selection{Types: f.Type, Groups: f.Group, Since: f.Since, Until: f.Until}
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
