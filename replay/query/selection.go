package query

import (
	"slices"
	"time"

	"codea1/events"
	"codea1/replay/eventlog"
)

// Selection selects events by their envelopes, so that other events need not be
// decoded. The zero value selects all.
type Selection struct {
	Types    []events.Type
	Groups   []string
	FromStep int // training steps; 0 is no bound
	ToStep   int
	Since    time.Time // time of the event; zero is no bound
	Until    time.Time // exclusive
}

// Selects reports whether an event is selected. With a bound on steps, only events
// of a training step are: those of training groups, and policy versions.
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
