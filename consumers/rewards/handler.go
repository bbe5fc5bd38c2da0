package rewards

import (
	"context"
	"errors"
	"fmt"
	"time"

	"codea1/events"
	"codea1/events/stage"
)

// Handler is the handler of the rewards stage. It turns an executed training
// group into a rewarded one, and drops a group with only masked answers.
type Handler struct {
	Recipe Recipe
	Source string           // the replica, as in the envelope
	Now    func() time.Time // stamps events; never an input of a reward
}

// Handle takes one code.executed event. It ignores groups of an evaluation. For
// a group with only masked answers it returns a stage.Drop.
func (h *Handler) Handle(_ context.Context, e *events.Event) ([]*events.Event, error) {
	group, ok := e.Payload.(*events.CodeExecuted)
	if !ok {
		return nil, fmt.Errorf("rewards: want %s, have %s", events.TypeCodeExecuted, e.Type)
	}
	if group.Plan.Purpose != events.PurposeTrain {
		return nil, nil
	}
	rewarded, err := Score(h.Recipe, group)
	switch {
	case errors.Is(err, ErrAllMasked):
		return nil, stage.Drop(events.DropInfrastructure, fmt.Sprintf("%v; first: %s", err, firstFailure(group)))
	case err != nil:
		return nil, fmt.Errorf("rewards: group %s: %w", e.Group, err)
	}
	return []*events.Event{events.Caused(e, h.Source, h.Now(), rewarded)}, nil
}

func firstFailure(group *events.CodeExecuted) string {
	for m := range group.Answers {
		if f := group.Answers[m].Failure; f != "" {
			return f
		}
		for n := range group.Answers[m].Suites {
			if f := group.Answers[m].Suites[n].Failure; f != "" {
				return f
			}
		}
	}
	return ""
}
