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

// Handle takes one tests.sampled event and makes one code.executed event. In a run
// without a Test LLM it takes a code.sampled or code.judged event, and its group has no suites. An
// error means that the sandbox or the ground truth failed: nothing is known about
// the group yet.
func (h *Handler) Handle(ctx context.Context, e *events.Event) ([]*events.Event, error) {
	var sampled *events.TestsSampled
	switch p := e.Payload.(type) {
	case *events.TestsSampled:
		sampled = p
	case *events.CodeSampled:
		sampled = &events.TestsSampled{
			Posed: p.Posed, CodeVersion: p.Version, Version: p.Posed.Plan.TestVersion, Codes: p.Codes(),
			Suites: make([][]events.Completion, len(p.Answers)),
		}
	case *events.CodeJudged:
		sampled = &events.TestsSampled{
			Posed: p.Posed, CodeVersion: p.Version, Version: p.Posed.Plan.TestVersion, Codes: p.Codes,
			Suites: make([][]events.Completion, len(p.Codes)), Judged: p.Judged,
		}
	default:
		return nil, fmt.Errorf("execution: want %s, %s or %s, have %s", events.TypeTestsSampled, events.TypeCodeSampled, events.TypeCodeJudged, e.Type)
	}
	if plan := &sampled.Posed.Plan; e.Type != events.TypeTestsSampled && plan.Suites > 0 {
		return nil, fmt.Errorf("execution: group %s wants %d suites, but the run has no Test LLM", e.Group, plan.Suites)
	}
	executed, err := h.Executor.Execute(ctx, sampled)
	if err != nil {
		return nil, fmt.Errorf("execution: group %s: %w", e.Group, err)
	}
	executed.Judged = sampled.Judged
	return []*events.Event{events.Caused(e, h.Source, h.Now(), executed)}, nil
}
