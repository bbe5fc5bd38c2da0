package natsbus

import (
	"fmt"

	"codea1/events"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// headerPrefix is CloudEvents' for NATS in binary mode.
const headerPrefix = "ce-"

func toNATS(m *events.Message) *nats.Msg {
	header := make(nats.Header, 16)
	m.Headers(headerPrefix, header.Set)
	return &nats.Msg{Subject: subjectOf(m), Header: header, Data: m.Data}
}

// fromNATS returns the message of a JetStream message. It refuses one whose
// headers name another event than its subject does.
func fromNATS(msg jetstream.Msg) (events.Message, error) {
	m, err := events.ParseMessage(headerPrefix, msg.Headers().Get, msg.Data())
	if err != nil {
		return events.Message{}, fmt.Errorf("subject %s: %w", msg.Subject(), err)
	}
	if want := subjectOf(&m); want != msg.Subject() {
		return events.Message{}, fmt.Errorf("subject %s: the headers belong on %s", msg.Subject(), want)
	}
	return m, nil
}
