package kafkabus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"codea1/events"
	"codea1/events/internal/client"
)

const (
	// readBytes bounds one request to a partition.
	readBytes = 1 << 20
	// aheadBytes bounds the payloads that are kept.
	aheadBytes = 16 << 20
)

// payloadReader reads payloads. A broker returns whole batches, whose other
// payloads are usually read next, so it keeps them. It is not safe for
// concurrent use.
type payloadReader struct {
	control *control
	ahead   map[location]record
	bytes   int // size of ahead
}

// location is the location of a record.
type location struct {
	topicPartition
	offset int64
}

func newPayloadReader(ctl *control) *payloadReader {
	return &payloadReader{control: ctl, ahead: make(map[location]record)}
}

// take returns the record at a location and removes it from those kept. A
// request asks for up to mostBytes. take waits until an outage ends. It returns
// events.ErrPosition if the record or its retry topic does not exist any more, and
// events.ErrMalformed if the record was never written.
func (s *payloadReader) take(ctx, owner context.Context, at location, mostBytes int64) (record, error) {
	if found, ok := s.ahead[at]; ok {
		delete(s.ahead, at)
		s.bytes -= len(found.value)
		return found, nil
	}
	list, err := s.fetch(ctx, owner, at, mostBytes)
	if err != nil {
		return record{}, err
	}
	for _, more := range list[1:] {
		if s.bytes+len(more.value) > aheadBytes {
			// These are mostly payloads of other runs, of other members, or
			// read before: few of them are asked for.
			clear(s.ahead)
			s.bytes = 0
		}
		next := location{at.topicPartition, more.offset}
		if _, ok := s.ahead[next]; !ok {
			s.ahead[next] = more
			s.bytes += len(more.value)
		}
	}
	return list[0], nil
}

func (s *payloadReader) fetch(ctx, owner context.Context, at location, mostBytes int64) ([]record, error) {
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(owner, cancel)
	defer stop()
	topic := at.topic(s.control.run)
	var absent time.Time // since when the brokers answer that they have no such record
	for logged := false; ; {
		list, err := s.control.bus.fetch(both, topic, at.partition, at.offset, mostBytes, followWait)
		if err == nil && len(list) > 0 && list[0].offset == at.offset {
			return list, nil
		}
		if err := client.Ended(ctx, owner); err != nil {
			return nil, err
		}
		passing, lost := s.lost(both, at, len(list) > 0, err)
		switch {
		case lost != nil && (!passing || !absent.IsZero() && time.Since(absent) > s.control.bus.absence):
			return nil, fmt.Errorf("kafka: topic %s partition %d has no payload at offset %d: %w", topic, at.partition, at.offset, lost)
		case lost == nil:
			absent = time.Time{}
		case absent.IsZero():
			absent = time.Now()
		}
		if !logged && isRefusal(err) { // tail.follow logs outages
			logged = true
			s.control.bus.logger.Warn("kafka: the brokers refuse to return a payload, trying again", "run", s.control.run, "topic", topic, "error", err)
		}
		if err := client.Pause(ctx, owner, retryPause); err != nil {
			return nil, err
		}
	}
}

// lost says why the answer to a request means that there is no record at a location:
// events.ErrPosition if it was deleted, and events.ErrMalformed if it was never
// written, so that its change is forged. It returns nil if the answer says nothing.
// A passing answer may be another one soon: after a change of the leader, the
// brokers show the last records later.
func (s *payloadReader) lost(ctx context.Context, at location, beyond bool, err error) (passing bool, why error) {
	bus := s.control.bus
	switch {
	case at.retries != "" && (errors.Is(err, kafka.OffsetOutOfRange) || err == nil && beyond || isUnknown(err)):
		return false, events.ErrPosition
	case err == nil:
		return !beyond, events.ErrMalformed
	case errors.Is(err, kafka.OffsetOutOfRange):
		found, err := bus.offsets(ctx, at.topic(s.control.run), kafka.FirstOffsetOf(at.partition))
		switch {
		case err != nil:
			return false, nil
		case at.offset < found.FirstOffset:
			return false, events.ErrPosition
		}
		return false, events.ErrMalformed
	case isUnknown(err):
		bus.mu.Lock()
		defer bus.mu.Unlock()
		if at.partition >= bus.partitions[at.typ] { // or it was added since Connect
			return true, events.ErrMalformed
		}
	}
	return false, nil
}
