package stage

import (
	"context"
	"fmt"
	"time"

	"codea1/events"
)

// Handler turns each event of a batch into output events. It returns one Result
// per event, in the same order. It must return soon after ctx ends, and must
// make the same outputs when it is called again with the same events.
type Handler func(ctx context.Context, batch []*events.Event) []Result

// Result is the result for one event.
type Result struct {
	Events []*events.Event // outputs, not to be changed any more; published only if Err is nil
	Err    error           // nil, Drop, Snooze, or a failure to retry
}

// Each makes a Handler from a function for one event.
func Each(handle func(context.Context, *events.Event) ([]*events.Event, error)) Handler {
	return func(ctx context.Context, batch []*events.Event) []Result {
		results := make([]Result, len(batch))
		for i, e := range batch {
			results[i].Events, results[i].Err = handle(ctx, e)
		}
		return results
	}
}

// Drop is the error of a handler that gives up on an event: the stage publishes
// a group.dropped with the reason and acknowledges.
func Drop(reason events.DropReason, detail string) error { return &dropError{reason, detail} }

type dropError struct {
	reason events.DropReason
	detail string
}

func (e *dropError) Error() string { return fmt.Sprintf("drop: %s: %s", e.reason, e.detail) }

// Snooze is the error of a handler that cannot handle an event yet. The event
// is delivered again after d. It does not count as a failure.
func Snooze(d time.Duration) error { return &snoozeError{d} }

type snoozeError struct{ after time.Duration }

func (e *snoozeError) Error() string { return fmt.Sprintf("snooze for %v", e.after) }
