package stage

import (
	"context"
	"errors"
	"time"

	"codea1/events"
)

// Dead letters are read at a quarter of the time for which they are held,
// within these bounds. That costs the bus one request, and one per dead letter.
const (
	minLook = 10 * time.Millisecond
	maxLook = time.Minute
)

// releaseHeld drops the groups of dead letters that were not redelivered in
// time, until ctx ends. Every replica of the stage does so. The drop derives
// from the dead letter's event, so all replicas publish the same event.
//
// If a dead letter is redelivered at the moment when its time is over, the
// group may be dropped although the stage handles the event.
func (s *Stage) releaseHeld(ctx context.Context, letters events.DeadLetters) {
	tick := time.NewTicker(min(max(s.config.HoldDeadLetters/4, minLook), maxLook))
	defer tick.Stop()
	released := make(map[string]bool) // by dead letter ID; a released one stays on the list
	for {
		if err := s.release(ctx, letters, released); err != nil && ctx.Err() == nil {
			s.logger.Warn("cannot read dead letters, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// release drops the groups whose time is over and that are not in released, and
// adds them to it.
func (s *Stage) release(ctx context.Context, letters events.DeadLetters, released map[string]bool) error {
	list, err := letters.DeadLetters(ctx, s.config.Run)
	if err != nil {
		return err
	}
	for i := range list {
		l := &list[i]
		if l.Name != s.config.Name || released[l.ID] || time.Since(l.Time) < s.config.HoldDeadLetters {
			continue
		}
		_, m, err := letters.DeadLetter(ctx, s.config.Run, l.ID)
		if errors.Is(err, events.ErrNoDeadLetter) {
			continue // redelivered meanwhile
		}
		if err != nil {
			return err
		}
		d := s.rules.released(s.input(m), l)
		if d.reason == "" {
			released[l.ID] = true
			continue
		}
		if err := s.publisher.Publish(ctx, d.publish...); err != nil && !errors.Is(err, events.ErrLineage) {
			return err
		}
		released[l.ID] = true
		s.metrics.leave(d)
		s.logger.Warn("group dropped, its dead letter was not redelivered in time", "letter", l.ID, "group", l.Group, "held", s.config.HoldDeadLetters)
	}
	return nil
}

// released returns the decision that drops the group of a held dead letter. The
// dead letter of a message that is no event drops none.
func (r rules) released(in input, l *events.DeadLetter) decision {
	if in.err != nil {
		return decision{}
	}
	return r.drop(in, events.DropRetries, l.Reason)
}
