package execution

import (
	"context"
	"fmt"
	"time"

	"codea1/events"
)

// Handler is the execution stage: it turns a group's answers and suites into
// verdicts.
type Handler struct {
	Executor *Executor
	Source   string           // the replica, as in the envelope
	Now      func() time.Time // stamps events; never an input of a verdict
}

// Handle takes one tests.sampled event and makes one code.executed event. An
// error means that the sandbox or the ground truth failed: nothing is known about
// the group yet.
func (h *Handler) Handle(ctx context.Context, e *events.Event) ([]*events.Event, error) {
	sampled, ok := e.Payload.(*events.TestsSampled)
	if !ok {
		return nil, fmt.Errorf("execution: want %s, have %s", events.TypeTestsSampled, e.Type)
	}
	executed, err := h.Executor.Execute(ctx, sampled)
	if err != nil {
		return nil, fmt.Errorf("execution: group %s: %w", e.Group, err)
	}
	return []*events.Event{events.Caused(e, h.Source, h.Now(), executed)}, nil
}
