package stage

import (
	"context"
	"errors"
	"time"

	"codea1/events"
)

// How often dead letters are looked at: a quarter of the time they are held,
// within these bounds. A look costs the bus one request, and one per letter.
const (
	minLook = 10 * time.Millisecond
	maxLook = time.Minute
)

// releaseHeld drops the groups of dead letters that nobody has sent back in
// time, until ctx ends. Every instance of the stage does it, whoever made the
// letter: its ID is that of the dead letter's event, so it is one event.
//
// A letter sent back at the very moment its time is over may come too late: its
// group is dropped, and what the stage then makes of it stands after the
// group's end.
func (s *Stage) releaseHeld(ctx context.Context, letters events.DeadLetters) {
	tick := time.NewTicker(min(max(s.config.HoldDeadLetters/4, minLook), maxLook))
	defer tick.Stop()
	released := make(map[string]bool) // by letter; what is released stays on the list
	for {
		if err := s.release(ctx, letters, released); err != nil && ctx.Err() == nil {
			s.logger.Warn("cannot look at dead letters, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// release drops the groups whose time is over, but for those that released
// names, and adds them to it.
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
			continue // sent back meanwhile
		}
		if err != nil {
			return err
		}
		d := s.rules.released(s.input(m), l)
		if err := s.publish(ctx, d.publish); err != nil && !errors.Is(err, events.ErrLineage) {
			return err
		}
		released[l.ID] = true
		s.metrics.leave(d)
		s.logger.Warn("group dropped, nobody has tried its dead letter again", "letter", l.ID, "group", l.Group, "held", s.config.HoldDeadLetters)
	}
	return nil
}

// released is the drop of a group whose dead letter was held.
func (r rules) released(in input, l *events.DeadLetter) decision {
	reason := events.DropRetries
	if in.err != nil && !errors.Is(in.err, events.ErrNewerSchema) {
		reason = events.DropMalformed
	}
	return r.drop(in, reason, l.Reason)
}
