package audit

import (
	"context"
	"errors"

	"codea1/events"
	"codea1/replay/eventlog"
)

// causes has the type of the cause of each type that has one.
var causes = events.Causes()

// known is an event that a later one may name as its cause.
type known struct {
	seq     uint64
	payload string // hash
	is      events.Type
}

// recent holds the last events, so that the check of a cause reads nothing: an
// effect comes soon after its cause.
type recent struct{ newer, older map[string]known }

// recentEvents is how many events a generation of recent holds.
const recentEvents = 1 << 14

func (c *recent) add(r *eventlog.Record) {
	if len(c.newer) >= recentEvents || c.newer == nil {
		c.newer, c.older = make(map[string]known, recentEvents), c.newer
	}
	c.newer[r.Message.ID] = known{r.Seq, r.PayloadHash.String(), r.Message.Type}
}

// lookup returns the event with an ID among those up to the current one.
func (h *historian) lookup(ctx context.Context, id string) (k known, ok bool, err error) {
	if k, ok := h.causes.newer[id]; ok {
		return k, true, nil
	}
	if k, ok := h.causes.older[id]; ok {
		return k, true, nil
	}
	r, err := h.log.Get(ctx, id)
	if errors.Is(err, eventlog.ErrNotFound) || err == nil && r.Seq > h.at.Seq {
		return known{}, false, nil
	}
	return known{r.Seq, r.PayloadHash.String(), r.Message.Type}, err == nil, err
}

func (h *historian) checkCause(ctx context.Context, e *events.Event) error {
	want, caused := causes[e.Type]
	if e.CausationID == "" {
		switch {
		case caused:
			h.find("has no cause, and follows from %s", want)
		case e.Type != events.TypeGroupDropped && events.New(e.Run, e.Group, e.Source, e.Time, e.Payload).ID != e.ID:
			h.find("its ID %s does not follow from run, type and group", e.ID)
		}
		return nil
	}
	if events.DeriveID(e.CausationID, e.Type) != e.ID {
		h.find("its ID %s does not follow from its cause %s", e.ID, e.CausationID)
	}
	cause, ok, err := h.lookup(ctx, e.CausationID)
	if err != nil {
		return err
	}
	if !ok {
		h.find("its cause %s is not in the log before it", e.CausationID)
		return nil
	}
	if cause.payload != e.CausationHash {
		h.find("follows from another payload than the one that stands as event %d", cause.seq)
	}
	if caused && cause.is != want {
		h.find("its cause, event %d, is no %s", cause.seq, want)
	}
	return nil
}
