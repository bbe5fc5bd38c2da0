package natsbus

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
)

// headerPrefix is the CloudEvents prefix for NATS in binary mode.
const headerPrefix = "ce-"

func toNATS(m *events.Message) *nats.Msg {
	header := make(nats.Header, 16)
	values := make([]string, 0, 16) // one allocation for all headers
	m.Headers(headerPrefix, func(name, value string) {
		values = append(values, value)
		header[name] = values[len(values)-1 : len(values) : len(values)]
	})
	return &nats.Msg{Subject: subjectOf(m), Header: header, Data: m.Data}
}

// fromNATS returns the event of a JetStream message. It refuses a message in a
// later place that does not count.
func (b *Bus) fromNATS(ctx context.Context, msg jetstream.Msg, sequence uint64) (events.Message, error) {
	m, err := parse(msg.Subject(), msg.Headers(), msg.Data())
	if err != nil {
		return events.Message{}, err
	}
	if place, _ := placeOf(msg.Subject()); place > 1 {
		counts, err := b.counts(ctx, &m, place, sequence)
		if err != nil {
			return events.Message{}, fmt.Errorf("subject %s: %w: %w", msg.Subject(), errLater, err)
		}
		if !counts {
			return events.Message{}, fmt.Errorf("subject %s: %w: another message is the event", msg.Subject(), events.ErrMalformed)
		}
	}
	return m, nil
}

// malformed describes a message that is no event.
func malformed(msg jetstream.Msg, err error) *events.MalformedError {
	e := &events.MalformedError{Place: msg.Subject(), Data: msg.Data(), Err: err}
	for _, name := range slices.Sorted(maps.Keys(msg.Headers())) {
		for _, value := range msg.Headers()[name] {
			e.AddHeader(name, value)
		}
	}
	return e
}

// parse refuses headers of another event than that of the subject.
func parse(subject string, header nats.Header, data []byte) (events.Message, error) {
	m, err := events.ParseMessage(headerPrefix, header.Get, data)
	if err != nil {
		return events.Message{}, fmt.Errorf("subject %s: %w: %w", subject, events.ErrMalformed, err)
	}
	if _, first := placeOf(subject); first != subjectOf(&m) {
		want := subjectOf(&m)
		return events.Message{}, fmt.Errorf("subject %s: %w: the headers are those of subject %s", subject, events.ErrMalformed, want)
	}
	return m, nil
}
