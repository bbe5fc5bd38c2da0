package natsbus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
	"codea1/events/internal/client"
)

// An event has a subject that everyone can compute before it is published. A
// client with the right to publish can therefore store a message there that is
// no event. The event then has the next place:
//
//	codea1.<run>.<type>.<group>               place 1
//	codea1.<run>.again.<type>.<group>.<n>     places 2 to maxPlaces
//
// The message of a place counts if it is an event and each place before it has
// an older message that is none. Messages of a stream never change, so all
// readers and publishers decide the same, whenever they look. An event of
// events.CourseTypes counts in each place after older messages: readers take the
// first one in turn.
const (
	againToken = "again"
	maxPlaces  = 32
)

func placeSubject(run string, t events.Type, group string, place int) string {
	if place == 1 {
		return eventSubject(run, t, group)
	}
	return prefix + "." + run + "." + againToken + "." + string(t) + "." + group + "." + strconv.Itoa(place)
}

// placeOf returns the place of a subject, and the subject of place 1.
func placeOf(subject string) (place int, first string) {
	tokens := strings.Split(subject, ".")
	if len(tokens) != 7 || tokens[2] != againToken {
		return 1, subject
	}
	place, err := strconv.Atoi(tokens[6])
	if err != nil || place < 2 || place > maxPlaces || strconv.Itoa(place) != tokens[6] {
		return 0, subject
	}
	return place, strings.Join(append(tokens[:2:2], tokens[3:6]...), ".")
}

// standing returns the stored event of m's type and group after m.Beside others, or
// nil and the first free place, up to last. The error of a full list of places is
// events.ErrMalformed.
func (b *Bus) standing(ctx context.Context, m *events.Message, last int) (stored *jetstream.RawStreamMsg, free int, err error) {
	var before uint64 // the highest sequence of the places before
	beside := m.Beside
	for place := 1; place <= last; place++ {
		msg, err := b.getLast(ctx, m.Run, placeSubject(m.Run, m.Type, m.Group, place))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil, place, nil
		}
		if err != nil {
			return nil, 0, err
		}
		if msg.Sequence > before && isEvent(msg) {
			if beside == 0 || beside == anyBeside && place == last {
				return msg, 0, nil
			}
			beside = max(beside-1, anyBeside)
		}
		before = max(before, msg.Sequence)
	}
	return nil, 0, fmt.Errorf("%w: %s %s: %d messages that are no events have its subjects", events.ErrMalformed, m.Type, m.Group, last)
}

// anyBeside is the Message.Beside of a reader: the event of the last place counts
// after each number of others.
const anyBeside = -1

func isEvent(msg *jetstream.RawStreamMsg) bool {
	m, err := parse(msg.Subject, msg.Header, msg.Data)
	if err == nil {
		_, err = m.Admit()
	}
	return err == nil
}

// counts reports whether the message of a later place counts.
func (b *Bus) counts(ctx context.Context, m *events.Message, place int, sequence uint64) (bool, error) {
	asked := events.Message{Envelope: m.Envelope}
	if slices.Contains(events.CourseTypes(), m.Type) {
		asked.Beside = anyBeside
	}
	for {
		stored, free, err := b.standing(ctx, &asked, place)
		switch {
		case errors.Is(err, events.ErrMalformed):
			return false, nil
		case err != nil || stored != nil:
			return err == nil && stored.Sequence == sequence, err
		}
		// The answering node may be behind; the leader is not.
		subject := placeSubject(m.Run, m.Type, m.Group, free)
		s, err := b.stream(ctx, m.Run)
		if err != nil {
			return false, err
		}
		var info *jetstream.StreamInfo
		if err := b.ask(ctx, func(ctx context.Context) (err error) {
			info, err = s.Info(ctx, jetstream.WithSubjectFilter(subject))
			return err
		}); err != nil || info.State.Subjects[subject] == 0 {
			return false, err
		}
		if err := client.Pause(ctx, b.ctx, retryPause); err != nil {
			return false, err
		}
	}
}

// settleTaken handles the refusal of a message because its subject has one. If
// that is no event, it stores m in the next place.
func (b *Bus) settleTaken(ctx context.Context, m *events.Message) error {
	first, err := b.getStored(ctx, m.Run, subjectOf(m))
	if err != nil {
		return fmt.Errorf("look up the stored event: %w", err)
	}
	found, reason := parse(first.Subject, first.Header, first.Data)
	if reason == nil && m.Beside == 0 {
		if isEvent, err := m.Standing(&found); isEvent || err != nil {
			return err
		}
	}
	for {
		stored, place, err := b.standing(ctx, m, maxPlaces)
		if err != nil {
			return err
		}
		if stored != nil {
			found, err := parse(stored.Subject, stored.Header, stored.Data)
			if err == nil {
				_, err = m.Standing(&found)
			}
			return err
		}
		msg := toNATS(m)
		msg.Subject = placeSubject(m.Run, m.Type, m.Group, place)
		err = b.ask(ctx, func(ctx context.Context) error {
			_, err := b.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(0))
			return orFull(err)
		})
		switch {
		case err == nil:
			b.logger.Error("nats: a message that is no event has the subject of an event, which is stored beside it",
				"taken", first.Subject, "stored", msg.Subject)
			return nil
		case !isTaken(err):
			return err
		}
		// Another publisher has stored it, or the answering node is behind.
		if err := client.Pause(ctx, b.ctx, retryPause); err != nil {
			return err
		}
	}
}
