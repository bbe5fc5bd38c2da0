package stage

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"codea1/events"
)

// Publisher publishes messages and tries again after an error of the bus. The
// zero Backoff means the default of Config.
type Publisher struct {
	Bus interface {
		Publish(ctx context.Context, messages ...events.Message) error
	}
	Backoff Backoff
	Logger  *slog.Logger

	asked func(ctx context.Context, err error) // called after each try; nil for none
}

// Publish returns once all messages are stored. It tries again until ctx ends
// or the bus returns events.ErrLineage, ErrForeignEvent, ErrTooLarge or
// ErrClosed.
func (p *Publisher) Publish(ctx context.Context, messages ...events.Message) error {
	backoff := p.Backoff
	if backoff == (Backoff{}) {
		backoff = defaultBackoff
	}
	for chunk := range slices.Chunk(messages, events.MaxPublishBatch) {
		for failures := 0; ; {
			err := p.Bus.Publish(ctx, chunk...)
			if p.asked != nil {
				p.asked(ctx, err)
			}
			if err == nil {
				if failures > 0 {
					p.Logger.Info("publishes again", "failures", failures)
				}
				break
			}
			if ctx.Err() != nil || errors.Is(err, events.ErrLineage) || errors.Is(err, events.ErrForeignEvent) || errors.Is(err, events.ErrTooLarge) || errors.Is(err, events.ErrClosed) {
				return err
			}
			failures++
			if failures == 1 {
				p.Logger.Warn("cannot publish, trying again", "type", chunk[0].Type, "error", err)
			}
			if err := sleep(ctx, backoff.delay(chunk[0].ID, failures)); err != nil {
				return err
			}
		}
	}
	return nil
}
