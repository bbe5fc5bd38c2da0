package natsbus

import (
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

// fromNATS returns the event of a JetStream message.
func fromNATS(msg jetstream.Msg) (events.Message, error) {
	return parse(msg.Subject(), msg.Headers(), msg.Data())
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
	if want := subjectOf(&m); want != subject {
		return events.Message{}, fmt.Errorf("subject %s: %w: the headers are those of subject %s", subject, events.ErrMalformed, want)
	}
	return m, nil
}
