package kafkabus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"codea1/events"
	"codea1/events/internal/client"
)

// Read implements events.Bus. A Position is the decimal control offset after
// the event change.
func (b *Bus) Read(ctx context.Context, config events.ReadConfig) (events.Reader, error) {
	if err := client.Ended(ctx, b.ctx); err != nil {
		return nil, err
	}
	r := &reader{bus: b, malformed: config.Malformed}
	if config.From != events.Start {
		from, err := strconv.ParseUint(string(config.From), 10, 63)
		if err != nil {
			return nil, fmt.Errorf("kafka: read run %s: position %q is not a control offset", config.Run, config.From)
		}
		r.at = int64(from)
	}
	if len(config.Types) > 0 {
		r.types = make(map[events.Type]bool, len(config.Types))
		for _, t := range config.Types {
			r.types[t] = true
		}
	}
	var err error
	if r.control, err = b.control(ctx, config.Run); err != nil {
		return nil, fmt.Errorf("kafka: read run %s: %w", config.Run, err)
	}
	if r.at > 0 || config.New {
		end, err := b.end(ctx, r.control.topic)
		if err != nil {
			return nil, fmt.Errorf("kafka: read run %s: %w", config.Run, err)
		}
		if config.New {
			r.at = end
		}
		if r.at > end {
			return nil, fmt.Errorf("kafka: read run %s: %w: position %d, end %d", config.Run, events.ErrPosition, r.at, end)
		}
	}
	r.payloads = newPayloadReader(r.control)
	r.session = client.NewSession()
	r.ctx = r.session.Context()
	if err := b.life.Track(r); err != nil {
		return nil, err
	}
	return r, nil
}

type reader struct {
	bus       *Bus
	control   *control
	types     map[events.Type]bool // nil for all
	malformed bool                 // return malformed messages
	session   *client.Session
	ctx       context.Context // ends with Close

	at       int64 // control offset from which to read
	behind   atomic.Int64
	payloads *payloadReader
}

// Next implements events.Reader. It waits until an outage ends. A payload that is
// not the event of its change, or was never written, is malformed.
func (r *reader) Next(ctx context.Context) (events.Message, events.Position, error) {
	if err := r.session.Begin(ctx); err != nil {
		return events.Message{}, "", err
	}
	defer r.session.End()
	for {
		e, err := r.next(ctx)
		if err != nil {
			return events.Message{}, "", err
		}
		var m events.Message
		rec, err := r.payloads.take(ctx, r.ctx, e.location(), readBytes)
		if err == nil {
			m, err = rec.message(r.control.run, &e)
		} else if !errors.Is(err, events.ErrMalformed) {
			return events.Message{}, "", err
		}
		if err == nil && e.replaces > 0 {
			counts, failed := r.control.counts(ctx, r.payloads, &e, &m)
			if failed != nil {
				return events.Message{}, "", failed
			}
			if !counts {
				err = errReplaces
			}
		}
		r.at = e.at + 1
		position := events.Position(strconv.FormatInt(r.at, 10))
		if err == nil {
			return m, position, nil
		}
		if r.malformed {
			return events.Message{}, position, rec.malformed(&e, err)
		}
		r.bus.logger.Error("kafka: skipped a malformed payload", "run", r.control.run, "position", r.at, "error", err)
	}
}

// next waits for the next event of the wanted types.
func (r *reader) next(ctx context.Context) (storedEvent, error) {
	for {
		if err := client.Ended(ctx, r.ctx); err != nil {
			return storedEvent{}, err
		}
		var found *storedEvent
		var failed error
		changed := r.control.look(func(l *ledger) {
			for i := l.from(r.at); i < len(l.events) && found == nil; i++ {
				if r.types == nil || r.types[l.events[i].typ] {
					e := l.events[i]
					found = &e
					r.behind.Store(int64(len(l.events) - i - 1))
				}
			}
			if found == nil {
				r.at = max(r.at, l.end) // do not search these again
			}
			failed = r.control.failed
		})
		if found != nil {
			return *found, nil
		}
		if failed != nil {
			return storedEvent{}, failed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return storedEvent{}, ctx.Err()
		case <-r.ctx.Done():
			return storedEvent{}, events.ErrClosed
		}
	}
}

// Behind implements events.Lagging.
func (r *reader) Behind() int64 { return r.behind.Load() }

// Close implements events.Reader.
func (r *reader) Close() error {
	r.session.Close(func() {
		r.bus.life.Forget(r)
	})
	return nil
}
