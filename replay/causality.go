package replay

import "codea1/events"

// causes is events.Causes.
var causes = events.Causes()

// lookup returns where the event with an ID is among those met. Most causes are
// near.
func (h *historian) lookup(id eventID) (at place, ok bool, err error) {
	if at, ok := h.near.find(id); ok {
		return at, true, nil
	}
	seq, err := h.log.lookup(id)
	if err != nil || seq == 0 || seq > h.at.Seq {
		return place{}, false, err
	}
	r, err := h.log.recordOf(h.txn, id, seq)
	return place{seq, r.PayloadHash}, err == nil, err
}

// met takes down an event for those that follow from it.
func (h *historian) met(r *Record) {
	if len(h.near.newer) >= chunkEvents {
		h.near.turn()
	}
	h.near.add(parseID(r.Message.ID), place{r.Seq, r.PayloadHash})
}

func (h *historian) checkCause(e *events.Event) error {
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
	at, ok, err := h.lookup(parseID(e.CausationID))
	if err != nil {
		return err
	}
	if !ok {
		h.find("its cause %s is not in the log before it", e.CausationID)
		return nil
	}
	if at.payload != parseHash(e.CausationHash) {
		h.find("follows from another payload than the one that stands as event %d", at.seq)
	}
	item, err := h.txn.Get(eventKey(at.seq))
	if err != nil {
		return h.log.corrupt(at.seq, "event is missing", err)
	}
	if caused && item.UserMeta() != typeCodes[want] {
		h.find("its cause, event %d, is no %s", at.seq, want)
	}
	return nil
}
