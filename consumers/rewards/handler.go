package rewards

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"codea1/events"
)

// StageName is the name of the set of consumers that reward groups.
const StageName = "rewards"

// Handler is the rewards stage: it turns an executed training group into a
// rewarded one, or into a dropped one when there is nothing to reward.
type Handler struct {
	Recipe Recipe
	Source string           // the stage instance, as in the envelope
	Now    func() time.Time // stamps events; never an input of a reward
}

// Handle takes one code.executed event. Groups of an evaluation are not this
// stage's and lead to nothing.
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
		return []*events.Event{events.Caused(e, h.Source, h.Now(), dropped(group))}, nil
	case err != nil:
		return nil, fmt.Errorf("rewards: group %s: %w", e.Group, err)
	}
	return []*events.Event{events.Caused(e, h.Source, h.Now(), rewarded)}, nil
}

func dropped(group *events.CodeExecuted) *events.GroupDropped {
	detail := ErrAllMasked.Error()
	if f := firstFailure(group); f != "" {
		detail += "; first: " + f
	}
	return &events.GroupDropped{
		Purpose: group.Plan.Purpose, Step: group.Plan.Step, Slot: group.Plan.Slot, Groups: group.Plan.Groups,
		Stage: StageName, Reason: events.DropInfrastructure, Detail: clip(detail),
	}
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

func clip(s string) string {
	const most = 1 << 10 // bytes: a reason to read, not a log
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
