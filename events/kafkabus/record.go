package kafkabus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go"

	"codea1/events"
)

// headerPrefix is the CloudEvents prefix for Kafka in binary mode.
const headerPrefix = "ce_"

func toKafka(m *events.Message) kafka.Record {
	r := kafka.Record{Key: kafka.NewBytes([]byte(m.Group)), Value: kafka.NewBytes(m.Data)}
	m.Headers(headerPrefix, func(name, value string) {
		r.Headers = append(r.Headers, kafka.Header{Key: name, Value: []byte(value)})
	})
	return r
}

// record is a Kafka record, taken out of its batch.
type record struct {
	offset  int64
	headers []kafka.Header
	value   []byte
}

// message returns the event of a record. It refuses an event other than want.
func (r *record) message(run string, want *storedEvent) (events.Message, error) {
	m, err := events.ParseMessage(headerPrefix, func(name string) string {
		for i := range r.headers {
			if r.headers[i].Key == name {
				return string(r.headers[i].Value)
			}
		}
		return ""
	}, r.value)
	if err != nil {
		return events.Message{}, err
	}
	if id, err := parseID(m.ID); err != nil || id != want.id || m.Run != run || m.Type != want.typ {
		return events.Message{}, fmt.Errorf("%w: found %s %s of run %s, want event %x", events.ErrMalformed, m.Type, m.Group, m.Run, want.id)
	}
	return m, nil
}

// malformed describes a record that is not the event want.
func (r *record) malformed(want *storedEvent, err error) *events.MalformedError {
	e := &events.MalformedError{Place: fmt.Sprintf("%s partition %d offset %d", payloadTopic(want.typ), want.partition, want.offset), Data: r.value, Err: err}
	for i := range r.headers {
		e.AddHeader(r.headers[i].Key, string(r.headers[i].Value))
	}
	return e
}

// produce stores records as one batch, all or none, and returns the offset of
// the first. On success every broker in sync has them; after an error they may
// be stored or not.
func (b *Bus) produce(ctx context.Context, topic string, partition int, records []kafka.Record) (int64, error) {
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := b.client.Produce(limited, &kafka.ProduceRequest{
		Topic: topic, Partition: partition, RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(records...),
	})
	if err == nil {
		err = answer.Error
	}
	if err != nil {
		return 0, fmt.Errorf("topic %s: %w", topic, err)
	}
	return answer.BaseOffset, nil
}

// fetch returns the records from an offset: at least one batch, about
// mostBytes, and none if none comes within wait.
func (b *Bus) fetch(ctx context.Context, topic string, partition int, offset, mostBytes int64, wait time.Duration) ([]record, error) {
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := b.client.Fetch(limited, &kafka.FetchRequest{
		Topic: topic, Partition: partition, Offset: offset, MinBytes: 1, MaxBytes: mostBytes, MaxWait: wait,
	})
	if err == nil {
		err = answer.Error
	}
	if err != nil {
		return nil, fmt.Errorf("topic %s partition %d offset %d: %w", topic, partition, offset, err)
	}
	var list []record
	for {
		r, err := answer.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("topic %s partition %d offset %d: %w", topic, partition, offset, err)
		}
		taken := record{offset: r.Offset, headers: r.Headers}
		if r.Value != nil {
			taken.value, err = kafka.ReadAll(r.Value)
			_ = r.Value.Close()
		}
		if r.Key != nil {
			_ = r.Key.Close()
		}
		if err != nil {
			return nil, err
		}
		if r.Offset >= offset {
			list = append(list, taken)
		}
	}
}
