package query

import (
	"slices"
	"time"

	"codea1/events"
	"codea1/replay/eventlog"
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

// Selects reports whether an event is chosen. With a bound on steps, only
// events that belong to a training step are: groups posed for training, and
// policy versions.
func (s *Selection) Selects(m *events.Message) bool {
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
	step, ok := eventlog.StepOf(m)
	return ok && step >= s.FromStep && (s.ToStep == 0 || step <= s.ToStep)
}
