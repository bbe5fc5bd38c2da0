package stage

import (
	"context"
	"errors"

	"codea1/events"
)

// Journal keeps what a stage has made, by event ID, across restarts.
type Journal interface {
	// Get returns the message journalled under an event ID, if there is one.
	Get(id string) (events.Message, bool, error)
	// Put returns once the messages are on disk. The first under an ID stands.
	Put(messages []events.Message) error
}

// Journalled makes a function, which turns an event into one of type t, keep
// what it made before it is published. An event that is delivered again then
// leads to the same event again, whatever the function depends on besides, and
// costs nothing. A journal that fails makes the event fail: what is not kept is
// not published.
func Journalled(journal Journal, t events.Type, handle func(context.Context, *events.Event) ([]*events.Event, error)) func(context.Context, *events.Event) ([]*events.Event, error) {
	return func(ctx context.Context, e *events.Event) ([]*events.Event, error) {
		kept, found, err := journal.Get(events.DeriveID(e.ID, t))
		if err != nil {
			return nil, err
		}
		// Another payload under the ID of the input has no claim to it.
		if found && kept.CausationHash == e.Hash() {
			made, err := kept.Again()
			if err != nil {
				return nil, err
			}
			Replayed(ctx)
			return []*events.Event{made}, nil
		}
		made, err := handle(ctx, e)
		if err != nil || found {
			return made, err
		}
		messages := make([]events.Message, len(made))
		for i, m := range made {
			if messages[i], err = events.EncodeOnce(m); errors.Is(err, events.ErrTooLarge) {
				return made, nil // the stage drops it by name
			} else if err != nil {
				return nil, err
			}
		}
		return made, journal.Put(messages)
	}
}

// Replayed counts an event whose result was in a journal, for the metrics of
// the stage whose handler was given ctx. Elsewhere it does nothing.
func Replayed(ctx context.Context) {
	if m, ok := ctx.Value(metricsKey{}).(*metrics); ok {
		m.replayed.Inc()
	}
}

type metricsKey struct{}
