package evaluation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codea1/events"
	"codea1/events/stage"
)

// Handler is the handler of the evaluation stage. It turns an executed held-out
// group into a scored one, and drops a group with only masked answers.
type Handler struct {
	Source  string                 // the replica, as in the envelope
	Now     func() time.Time       // stamps events; never an input of a score
	Trivial func(call string) bool // whether a call has an empty or one-element input
}

// Handle takes one code.executed event. It ignores training groups.
func (h *Handler) Handle(_ context.Context, e *events.Event) ([]*events.Event, error) {
	group, ok := e.Payload.(*events.CodeExecuted)
	if !ok {
		return nil, fmt.Errorf("evaluation: want %s, have %s", events.TypeCodeExecuted, e.Type)
	}
	if group.Plan.Purpose != events.PurposeEval {
		return nil, nil
	}
	scored, err := Score(group, h.Trivial)
	switch {
	case errors.Is(err, ErrAllMasked):
		return nil, stage.Drop(events.DropInfrastructure, fmt.Sprintf("%v; first: %s", err, group.Answers[0].Failure))
	case err != nil:
		return nil, fmt.Errorf("evaluation: group %s: %w", e.Group, err)
	}
	return []*events.Event{events.Caused(e, h.Source, h.Now(), scored)}, nil
}
