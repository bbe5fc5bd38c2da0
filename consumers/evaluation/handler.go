package evaluation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"codea1/events"
)

// StageName is the name of the set of consumers that score evaluations.
const StageName = "evaluation"

// Handler is the evaluation stage: it turns an executed held-out group into a
// scored one, or into a dropped one when there is nothing to score.
type Handler struct {
	Source string           // the stage instance, as in the envelope
	Now    func() time.Time // stamps events; never an input of a score
}

// Handle takes one code.executed event. Training groups are not this stage's
// and lead to nothing.
func (h *Handler) Handle(_ context.Context, e *events.Event) ([]*events.Event, error) {
	group, ok := e.Payload.(*events.CodeExecuted)
	if !ok {
		return nil, fmt.Errorf("evaluation: want %s, have %s", events.TypeCodeExecuted, e.Type)
	}
	if group.Plan.Purpose != events.PurposeEval {
		return nil, nil
	}
	scored, err := Score(group)
	switch {
	case errors.Is(err, ErrAllMasked):
		return []*events.Event{events.Caused(e, h.Source, h.Now(), dropped(group))}, nil
	case err != nil:
		return nil, fmt.Errorf("evaluation: group %s: %w", e.Group, err)
	}
	return []*events.Event{events.Caused(e, h.Source, h.Now(), scored)}, nil
}

func dropped(group *events.CodeExecuted) *events.GroupDropped {
	const most = 1 << 10 // bytes: a reason to read, not a log
	detail := ErrAllMasked.Error() + "; first: " + group.Answers[0].Failure
	if len(detail) > most {
		detail = strings.ToValidUTF8(detail[:most], "")
	}
	return &events.GroupDropped{
		Purpose: group.Plan.Purpose, Step: group.Plan.Step, Slot: group.Plan.Slot, Groups: group.Plan.Groups,
		Stage: StageName, Reason: events.DropInfrastructure, Detail: detail,
	}
}
