package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"codea1/events"
	"codea1/events/stage"
)

// Store keeps messages by event ID across restarts. An Outbox is one.
type Store interface {
	// Get returns the message stored under an event ID, if there is one.
	Get(id string) (events.Message, bool, error)
	// Put returns once the messages are on disk. If an ID has a message
	// already, that message stays.
	Put(messages []events.Message) error
}

// snoozeFor is the wait of a delivery while another delivery of its event is
// handled.
const snoozeFor = 250 * time.Millisecond

// Handler wraps the handler of a stage that turns an event into one event of
// type t. The output is stored before it is published, so a redelivery
// publishes the same output and calls handle no more.
//
// A stored output is used only if it names the payload of this very input as
// its cause. An input with another payload under the same ID is handled again;
// the bus then refuses the output and the stage drops the group.
//
// An event that is already being handled is snoozed. An event whose output
// cannot be stored fails: only stored events are published.
func Handler(store Store, t events.Type, handle stage.Handler) stage.Handler {
	h := &handler{store: store, output: t, handle: handle, claimed: make(map[string]bool)}
	return h.Handle
}

type handler struct {
	store  Store
	output events.Type
	handle stage.Handler

	mu      sync.Mutex
	claimed map[string]bool // IDs of the inputs being handled
}

// Handle answers inputs from the store, passes the others to the handler and
// stores its outputs.
func (h *handler) Handle(ctx context.Context, batch []*events.Event) []stage.Result {
	results := make([]stage.Result, len(batch))
	var todo []*events.Event
	var indexes []int // of todo in batch
	for i, e := range batch {
		if !h.claim(e.ID) {
			results[i].Err = stage.Snooze(snoozeFor)
			continue
		}
		defer h.release(e.ID)
		made, err := h.stored(e)
		switch {
		case err != nil:
			results[i].Err = err
		case made != nil:
			stage.CountReplayed(ctx)
			results[i].Events = []*events.Event{made}
		default:
			todo, indexes = append(todo, e), append(indexes, i)
		}
	}
	if len(todo) == 0 {
		return results
	}
	made := h.handle(ctx, todo)
	if len(made) != len(todo) {
		return nil // the stage reports it
	}
	h.put(made)
	for i, r := range made {
		results[indexes[i]] = r
	}
	return results
}

func (h *handler) claim(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.claimed[id] {
		return false
	}
	h.claimed[id] = true
	return true
}

func (h *handler) release(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.claimed, id)
}

// stored returns the output that was stored for an input, or nil.
func (h *handler) stored(e *events.Event) (*events.Event, error) {
	m, found, err := h.store.Get(events.DeriveID(e.ID, h.output))
	if err != nil || !found || m.CausationHash != e.Hash() {
		return nil, err
	}
	return m.Again()
}

// put stores the outputs in one call, so that they share a sync. If that
// fails, their results become errors.
func (h *handler) put(results []stage.Result) {
	var messages []events.Message
	var stored []int
	for i, r := range results {
		if r.Err != nil {
			continue
		}
		encoded, err := encode(r.Events)
		switch {
		case errors.Is(err, events.ErrTooLarge):
			// Not stored and not published: the stage drops the group.
		case err != nil:
			results[i] = stage.Result{Err: err}
		default:
			messages = append(messages, encoded...)
			stored = append(stored, i)
		}
	}
	if len(messages) == 0 {
		return
	}
	if err := h.store.Put(messages); err != nil {
		for _, i := range stored {
			results[i] = stage.Result{Err: err}
		}
	}
}

func encode(list []*events.Event) ([]events.Message, error) {
	messages := make([]events.Message, len(list))
	for i, e := range list {
		var err error
		if messages[i], err = events.EncodeOnce(e); err != nil {
			return nil, fmt.Errorf("encode the output of group %s: %w", e.Group, err)
		}
	}
	return messages, nil
}
