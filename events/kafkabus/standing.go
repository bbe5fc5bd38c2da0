package kafkabus

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"codea1/events"
)

// Everyone can compute the type and group of a later event. A client with the
// right to publish can therefore store a change for it with a payload that is no
// event. The publisher of the event then stores a change that replaces it: it
// names the control offset of the last change of that type and group, so of two
// such changes the first counts. A change counts if its payload is an event and
// those of all that it replaces are none. Records never change, so all readers
// and publishers decide the same, whenever they look.

var errReplaces = fmt.Errorf("%w: it replaces an event, or is none", events.ErrMalformed)

// stored reports whether one of the changes that name the type and group of a
// message is that of the message. written are the payloads of this process, which
// need not be read. The error is events.ErrLineage or a *ForeignEventError if
// another event is stored.
func (ctl *control) stored(ctx context.Context, payloads *payloadReader, m *events.Message, claims []storedEvent, written map[location]bool) (bool, error) {
	if len(claims) > maxReplaced {
		return false, fmt.Errorf("%w: %s %s: %d payloads that are no events have its name", events.ErrMalformed, m.Type, m.Group, len(claims))
	}
	beside := m.Beside
	for i := range claims {
		if written[claims[i].location()] {
			return true, nil
		}
		found, err := ctl.payload(ctx, payloads, &claims[i])
		if errors.Is(err, events.ErrMalformed) {
			continue
		}
		if err != nil {
			return false, err
		}
		if beside > 0 {
			if _, err := found.Admit(); err == nil {
				beside--
			}
			continue
		}
		if isEvent, err := m.Standing(&found); isEvent || err != nil {
			return isEvent, err
		}
	}
	return false, nil
}

// counts reports whether a payload that replaces others is an event, and those
// are none.
func (ctl *control) counts(ctx context.Context, payloads *payloadReader, e *storedEvent, m *events.Message) (bool, error) {
	if _, err := m.Admit(); err != nil {
		return false, nil
	}
	if slices.Contains(events.CourseTypes(), m.Type) {
		return true, nil // readers take the first one in turn
	}
	var replaced []storedEvent
	ctl.look(func(l *ledger) { replaced = l.replacedBy(e) })
	for i := range replaced {
		m, err := ctl.payload(ctx, payloads, &replaced[i])
		if err == nil {
			_, err = m.Admit()
			if err == nil {
				return false, nil
			}
			continue
		}
		if !errors.Is(err, events.ErrMalformed) {
			return false, err
		}
	}
	return true, nil
}

// payload returns the message of a change. The error is events.ErrMalformed if
// the payload does not exist or is that of another event.
func (ctl *control) payload(ctx context.Context, payloads *payloadReader, e *storedEvent) (events.Message, error) {
	r, err := payloads.take(ctx, ctl.ctx, e.location(), readBytes)
	if errors.Is(err, events.ErrPosition) {
		return events.Message{}, fmt.Errorf("%w: %w", events.ErrMalformed, err)
	}
	if err != nil {
		return events.Message{}, err
	}
	m, err := r.message(ctl.run, e)
	if err != nil && !errors.Is(err, events.ErrMalformed) {
		err = fmt.Errorf("%w: %w", events.ErrMalformed, err)
	}
	return m, err
}
