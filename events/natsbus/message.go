package natsbus

import (
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
)

// headerPrefix is CloudEvents' for NATS in binary mode.
const headerPrefix = "ce-"

func toNATS(m *events.Message) *nats.Msg {
	header := make(nats.Header, 16)
	values := make([]string, 0, 16) // of all headers: one allocation
	m.Headers(headerPrefix, func(name, value string) {
		values = append(values, value)
		header[name] = values[len(values)-1 : len(values) : len(values)]
	})
	return &nats.Msg{Subject: subjectOf(m), Header: header, Data: m.Data}
}

// fromNATS returns the message of a JetStream message.
func fromNATS(msg jetstream.Msg) (events.Message, error) {
	return parse(msg.Subject(), msg.Headers(), msg.Data())
}

// parse refuses headers that name another event than the subject does.
func parse(subject string, header nats.Header, data []byte) (events.Message, error) {
	m, err := events.ParseMessage(headerPrefix, header.Get, data)
	if err != nil {
		return events.Message{}, fmt.Errorf("subject %s: %w: %w", subject, events.ErrMalformed, err)
	}
	if want := subjectOf(&m); want != subject {
		return events.Message{}, fmt.Errorf("subject %s: %w: the headers belong on %s", subject, events.ErrMalformed, want)
	}
	return m, nil
}
