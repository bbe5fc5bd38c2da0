package kafkabus

import (
	"context"
	"fmt"
	"strconv"

	"codea1/events"
	"codea1/events/internal/client"
)

// Read implements events.Bus. A Position is the decimal journal offset after
// the event's note.
func (b *Bus) Read(ctx context.Context, config events.ReadConfig) (events.Reader, error) {
	if err := client.Ended(ctx, b.ctx); err != nil {
		return nil, err
	}
	r := &reader{bus: b}
	if config.From != events.Start {
		from, err := strconv.ParseUint(string(config.From), 10, 63)
		if err != nil {
			return nil, fmt.Errorf("kafka: read run %s: position %q is not a journal offset", config.Run, config.From)
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
	if r.journal, err = b.journal(ctx, config.Run); err != nil {
		return nil, fmt.Errorf("kafka: read run %s: %w", config.Run, err)
	}
	if r.at > 0 {
		end, err := b.end(ctx, r.journal.topic)
		if err != nil {
			return nil, fmt.Errorf("kafka: read run %s: %w", config.Run, err)
		}
		if r.at > end {
			return nil, fmt.Errorf("kafka: read run %s: %w: position %d, end %d", config.Run, events.ErrPosition, r.at, end)
		}
	}
	r.shelf = newShelf(r.journal)
	r.session = client.NewSession()
	r.ctx = r.session.Context()
	if err := b.life.Track(r); err != nil {
		return nil, err
	}
	return r, nil
}

type reader struct {
	bus     *Bus
	journal *journal
	types   map[events.Type]bool // nil for all
	session *client.Session
	ctx     context.Context // of the session

	at    int64 // journal offset from which to read
	shelf *shelf
}

// Next implements events.Reader. It waits out an outage, and skips and reports
// a payload that is not the event that the journal says it is.
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
		rec, err := r.shelf.take(ctx, r.ctx, e.spot(), readBytes)
		if err != nil {
			return events.Message{}, "", err
		}
		r.at = e.at + 1
		m, err := rec.message(r.journal.run, &e)
		if err != nil {
			r.bus.logger.Error("kafka: skipped a payload that is no event", "run", r.journal.run, "position", r.at, "error", err)
			continue
		}
		return m, events.Position(strconv.FormatInt(r.at, 10)), nil
	}
}

// next waits for the next event of the types asked for.
func (r *reader) next(ctx context.Context) (entry, error) {
	for {
		if err := client.Ended(ctx, r.ctx); err != nil {
			return entry{}, err
		}
		var found *entry
		var failed error
		changed := r.journal.look(func(l *ledger) {
			for i := l.from(r.at); i < len(l.events) && found == nil; i++ {
				if r.types == nil || r.types[l.events[i].typ] {
					e := l.events[i]
					found = &e
				}
			}
			if found == nil {
				r.at = max(r.at, l.end) // not to be searched again
			}
			failed = r.journal.failed
		})
		if found != nil {
			return *found, nil
		}
		if failed != nil {
			return entry{}, failed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return entry{}, ctx.Err()
		case <-r.ctx.Done():
			return entry{}, events.ErrClosed
		}
	}
}

// Close implements events.Reader.
func (r *reader) Close() error {
	r.session.Close(func() {
		r.bus.life.Forget(r)
	})
	return nil
}
