package audit

import (
	"context"
	"errors"

	"codea1/events"
	"codea1/replay/eventlog"
)

// known is an event that a later one may name as its cause.
type known struct {
	seq     uint64
	payload string // hash
	is      events.Type
}

// recent holds the last events, so that most causes are found without reading
// the log: an effect comes soon after its cause.
type recent struct{ newer, older map[string]known }

// recentEvents is the number of events in a generation of recent.
const recentEvents = 1 << 14

func (c *recent) add(r *eventlog.Record) {
	if len(c.newer) >= recentEvents || c.newer == nil {
		c.newer, c.older = make(map[string]known), c.newer
	}
	c.newer[r.Message.ID] = known{r.Seq, r.PayloadHash.String(), r.Message.Type}
}

// lookup returns the event with an ID among those up to the current one.
func (a *auditor) lookup(ctx context.Context, id string) (k known, ok bool, err error) {
	if k, ok := a.causes.newer[id]; ok {
		return k, true, nil
	}
	if k, ok := a.causes.older[id]; ok {
		return k, true, nil
	}
	r, err := a.log.Get(ctx, id)
	if errors.Is(err, eventlog.ErrNotFound) || err == nil && r.Seq > a.at.Seq {
		return known{}, false, nil
	}
	return known{r.Seq, r.PayloadHash.String(), r.Message.Type}, err == nil, err
}

// checkCause checks the cause and the ID of an event. A group.dropped event may
// have a cause of any type, or none.
func (a *auditor) checkCause(ctx context.Context, e *events.Event) error {
	want, caused := a.follows[e.Type]
	if e.CausationID == "" {
		switch {
		case caused:
			a.find("has no cause, and follows from %s", want)
		case e.Type != events.TypeGroupDropped && eventlog.RootID(e.Run, e.Group, e.Type) != e.ID:
			a.find("its ID %s does not follow from run, type and group", e.ID)
		}
		return nil
	}
	if events.DeriveID(e.CausationID, e.Type) != e.ID {
		a.find("its ID %s does not follow from its cause %s", e.ID, e.CausationID)
	}
	cause, ok, err := a.lookup(ctx, e.CausationID)
	if err != nil {
		return err
	}
	if !ok {
		a.find("its cause %s is not in the log before it", e.CausationID)
		return nil
	}
	if cause.payload != e.CausationHash {
		a.find("names another payload of its cause than that of event %d", cause.seq)
	}
	if caused && cause.is != want {
		a.find("its cause, event %d, is not %s", cause.seq, want)
	}
	return nil
}
