package natsbus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
	"codea1/events/internal/client"
)

// letter is the body of a dead letter, and of its redelivery. The subject has
// its ID.
type letter struct {
	Type       events.Type `json:"type"`
	Group      string      `json:"group"`
	Deliveries int         `json:"deliveries,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	Time       time.Time   `json:"time"`
}

// putLetter stores a message on a subject that has at most one. The error is
// isTaken if it has one.
func (b *Bus) putLetter(ctx context.Context, subject string, l *letter) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return b.ask(ctx, func(ctx context.Context) error {
		_, err := b.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: data},
			jetstream.WithExpectLastSequencePerSubject(0))
		return orFull(err)
	})
}

// getLast returns the message of a subject, or jetstream.ErrMsgNotFound. Any
// node of a cluster may answer, and may not have the latest message yet.
func (b *Bus) getLast(ctx context.Context, run, subject string) (*jetstream.RawStreamMsg, error) {
	s, err := b.stream(ctx, run)
	if err != nil {
		return nil, err
	}
	var msg *jetstream.RawStreamMsg
	err = b.ask(ctx, func(ctx context.Context) error {
		var err error
		msg, err = s.GetLastMsgForSubject(ctx, subject)
		return err
	})
	return msg, err
}

// getStored returns the message of a subject that has one.
func (b *Bus) getStored(ctx context.Context, run, subject string) (*jetstream.RawStreamMsg, error) {
	for began := time.Now(); ; {
		msg, err := b.getLast(ctx, run, subject)
		if !errors.Is(err, jetstream.ErrMsgNotFound) || time.Since(began) > silenceTimeout {
			return msg, err
		}
		if err := client.Pause(ctx, b.ctx, retryPause); err != nil {
			return nil, err
		}
	}
}

// getEvent returns the stored event of a type and group.
func (b *Bus) getEvent(ctx context.Context, run string, t events.Type, group string) (events.Message, error) {
	first, err := b.getStored(ctx, run, eventSubject(run, t, group))
	if err != nil {
		return events.Message{}, err
	}
	if !isEvent(first) {
		stored, _, err := b.standing(ctx, &events.Message{Envelope: events.Envelope{Run: run, Type: t, Group: group}}, maxPlaces)
		if err != nil {
			return events.Message{}, err
		}
		if stored != nil {
			first = stored
		}
	}
	return parse(first.Subject, first.Header, first.Data)
}

// DeadLetters implements events.DeadLetters.
func (b *Bus) DeadLetters(ctx context.Context, run string) (list []events.DeadLetter, err error) {
	defer client.Explain(&err, "nats: dead letters of run %q", run)
	if err := client.Ended(ctx, b.ctx); err != nil {
		return nil, err
	}
	redelivered := make(map[string]bool)
	if err := b.eachLetter(ctx, run, retryToken, func(msg *jetstream.RawStreamMsg) bool {
		redelivered[letterID(msg.Subject)] = true
		return true
	}); err != nil {
		return nil, err
	}
	var bad error
	err = b.eachLetter(ctx, run, deadToken, func(msg *jetstream.RawStreamMsg) bool {
		if redelivered[letterID(msg.Subject)] {
			return true
		}
		var found events.DeadLetter
		if found, bad = parseLetter(msg); bad == nil {
			list = append(list, found)
		}
		return bad == nil && len(list) < events.MaxDeadLetters
	})
	return list, errors.Join(err, bad)
}

// eachLetter calls f with the messages of a kind, oldest first, until f returns
// false.
func (b *Bus) eachLetter(ctx context.Context, run, kind string, f func(*jetstream.RawStreamMsg) bool) error {
	s, err := b.stream(ctx, run)
	if err != nil {
		return err
	}
	for from := uint64(1); ; {
		var msg *jetstream.RawStreamMsg
		err := b.ask(ctx, func(ctx context.Context) error {
			var err error
			msg, err = s.GetMsg(ctx, from, jetstream.WithGetMsgSubject(letterSubjects(run, kind, "*")))
			return err
		})
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil || !f(msg) {
			return err
		}
		from = msg.Sequence + 1
	}
}

func parseLetter(msg *jetstream.RawStreamMsg) (events.DeadLetter, error) {
	name, eventID, round, err := events.ParseDeadLetterID(letterID(msg.Subject))
	if err != nil {
		return events.DeadLetter{}, fmt.Errorf("subject %s: %w: %w", msg.Subject, events.ErrMalformed, err)
	}
	var l letter
	if err := json.Unmarshal(msg.Data, &l); err != nil {
		return events.DeadLetter{}, fmt.Errorf("subject %s: %w: %w", msg.Subject, events.ErrMalformed, err)
	}
	return events.DeadLetter{
		ID: events.DeadLetterID(name, eventID, round), Name: name, EventID: eventID, Type: l.Type, Group: l.Group,
		Round: round, Deliveries: l.Deliveries, Reason: l.Reason, Time: l.Time,
	}, nil
}

// deadLetter returns a dead letter that was not redelivered.
func (b *Bus) deadLetter(ctx context.Context, run, id string) (events.DeadLetter, error) {
	if err := client.Ended(ctx, b.ctx); err != nil {
		return events.DeadLetter{}, err
	}
	if _, _, _, err := events.ParseDeadLetterID(id); err != nil {
		return events.DeadLetter{}, err
	}
	msg, err := b.getLast(ctx, run, letterSubject(run, deadToken, id))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return events.DeadLetter{}, events.ErrNoDeadLetter
	}
	if err != nil {
		return events.DeadLetter{}, err
	}
	switch _, err := b.getLast(ctx, run, letterSubject(run, retryToken, id)); {
	case err == nil:
		return events.DeadLetter{}, fmt.Errorf("%w: it was redelivered", events.ErrNoDeadLetter)
	case !errors.Is(err, jetstream.ErrMsgNotFound):
		return events.DeadLetter{}, err
	}
	return parseLetter(msg)
}

// DeadLetter implements events.DeadLetters.
func (b *Bus) DeadLetter(ctx context.Context, run, id string) (found events.DeadLetter, m events.Message, err error) {
	defer client.Explain(&err, "nats: dead letter %s of run %q", id, run)
	if found, err = b.deadLetter(ctx, run, id); err == nil {
		m, err = b.getEvent(ctx, run, found.Type, found.Group)
	}
	return found, m, err
}

// Redeliver implements events.DeadLetters. It stores a message for the consumer
// of the worker set that refers to the event.
func (b *Bus) Redeliver(ctx context.Context, run, id string) (err error) {
	defer client.Explain(&err, "nats: redeliver %s of run %q", id, run)
	found, err := b.deadLetter(ctx, run, id)
	if err != nil {
		return err
	}
	for _, end := range events.EndTypes() {
		_, err := b.getLast(ctx, run, eventSubject(run, end, found.Group))
		if err == nil {
			return fmt.Errorf("%w: %s has a %s event", events.ErrGroupEnded, found.Group, end)
		}
		if !errors.Is(err, jetstream.ErrMsgNotFound) {
			return err
		}
	}
	subject := letterSubject(run, retryToken, id)
	l := letter{Type: found.Type, Group: found.Group, Time: time.Now().UTC()}
	err = b.putLetter(ctx, subject, &l)
	if !isTaken(err) {
		return err
	}
	stored, err := b.getStored(ctx, run, subject)
	if err != nil {
		return err
	}
	var first letter
	if err := json.Unmarshal(stored.Data, &first); err != nil {
		return fmt.Errorf("subject %s: %w: %w", subject, events.ErrMalformed, err)
	}
	if !first.Time.Equal(l.Time) { // otherwise an earlier try was stored without an answer
		return fmt.Errorf("%w: it was redelivered", events.ErrNoDeadLetter)
	}
	return nil
}

// errLater is returned for an event that is not available now.
var errLater = errors.New("the server does not answer")

// redelivered returns the event of a redelivery, and its round. The error is
// errLater if another try may succeed.
func (b *Bus) redelivered(ctx context.Context, run string, msg jetstream.Msg) (events.Message, int, error) {
	_, eventID, round, err := events.ParseDeadLetterID(letterID(msg.Subject()))
	var l letter
	if err == nil {
		err = json.Unmarshal(msg.Data(), &l)
	}
	if err != nil {
		return events.Message{}, 0, fmt.Errorf("subject %s: %w: %w", msg.Subject(), events.ErrMalformed, err)
	}
	m, err := b.getEvent(ctx, run, l.Type, l.Group)
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) && !errors.Is(err, events.ErrMalformed) {
		return events.Message{}, 0, fmt.Errorf("%w: %w", errLater, err)
	}
	if err == nil && m.ID != eventID {
		err = fmt.Errorf("subject %s: %w: its event is %s", msg.Subject(), events.ErrMalformed, m.ID)
	}
	return m, round + 1, err
}

// DeadLetter implements events.Delivery.
func (d *delivery) DeadLetter(ctx context.Context, reason string) error {
	m := &d.message
	id := events.DeadLetterID(d.name, m.ID, d.round)
	err := client.Ended(ctx, d.bus.ctx)
	if err == nil {
		err = d.bus.putLetter(ctx, letterSubject(m.Run, deadToken, id), &letter{
			Type: m.Type, Group: m.Group, Deliveries: d.number, Reason: events.ClipReason(reason), Time: time.Now().UTC(),
		})
	}
	if err != nil && !isTaken(err) {
		return fmt.Errorf("nats: dead letter %s: %w", id, err)
	}
	return d.answer(ctx, "drop", d.msg.Term)
}

// isRedelivery reports whether a subject is that of a redelivery.
func isRedelivery(run, subject string) bool {
	return strings.HasPrefix(subject, prefix+"."+run+"."+retryToken+".")
}
