package replaytest

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"codea1/events"
)

// MemoryBus keeps published messages, without regard to their IDs, and delivers them in
// order. A position is the number of messages read.
type MemoryBus struct {
	mu       sync.Mutex
	changed  chan struct{}
	Messages []events.Message
	Refuse   error // error of Publish, or nil
}

// NewMemoryBus returns a bus with messages.
func NewMemoryBus(messages ...events.Message) *MemoryBus {
	return &MemoryBus{Messages: slices.Clone(messages), changed: make(chan struct{})}
}

// Publish adds messages, or returns Refuse.
func (b *MemoryBus) Publish(_ context.Context, messages ...events.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Refuse != nil {
		return b.Refuse
	}
	b.Messages = append(b.Messages, messages...)
	close(b.changed)
	b.changed = make(chan struct{})
	return nil
}

// HasRun reports whether the bus has any message.
func (b *MemoryBus) HasRun(context.Context, string) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.Messages) > 0, nil
}

// Read reads the messages from a position.
func (b *MemoryBus) Read(_ context.Context, config events.ReadConfig) (events.Reader, error) {
	r := &memoryReader{bus: b}
	if config.From != events.Start {
		n, err := strconv.Atoi(string(config.From))
		if err != nil {
			return nil, err
		}
		r.next = n
	}
	return r, nil
}

type memoryReader struct {
	bus  *MemoryBus
	next int
}

// Next implements events.Reader.
func (r *memoryReader) Next(ctx context.Context) (events.Message, events.Position, error) {
	for {
		r.bus.mu.Lock()
		messages, changed := r.bus.Messages, r.bus.changed
		r.bus.mu.Unlock()
		if r.next < len(messages) {
			r.next++
			return messages[r.next-1], events.Position(strconv.Itoa(r.next)), nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return events.Message{}, "", ctx.Err()
		}
	}
}

// Close implements events.Reader.
func (r *memoryReader) Close() error { return nil }
