package kafkabus

import (
	"context"
	"errors"
	"fmt"

	"codea1/events"
	"codea1/events/internal/client"

	"github.com/segmentio/kafka-go"
)

const (
	// readBytes is how much is asked of a partition at once, at most.
	readBytes = 1 << 20
	// shelfBytes bounds the payloads that a shelf keeps.
	shelfBytes = 16 << 20
)

// shelf fetches payloads and keeps those that came with them: a broker gives
// whole batches, and their other events are mostly wanted next. It serves one
// goroutine.
type shelf struct {
	journal *journal
	kept    map[spot]record
	bytes   int // of kept
}

// spot is where a record lies.
type spot struct {
	place
	offset int64
}

func newShelf(j *journal) *shelf { return &shelf{journal: j, kept: make(map[spot]record)} }

// take returns the record that lies at a spot; it asks for up to mostBytes when
// it has to ask. It waits out an outage, and fails with events.ErrPosition when
// the record is gone; a retry topic that is not known is gone as well.
func (s *shelf) take(ctx, owner context.Context, at spot, mostBytes int64) (record, error) {
	if found, ok := s.kept[at]; ok {
		delete(s.kept, at)
		s.bytes -= len(found.value)
		return found, nil
	}
	list, err := s.fetch(ctx, owner, at, mostBytes)
	if err != nil {
		return record{}, err
	}
	for _, more := range list[1:] {
		if s.bytes+len(more.value) > shelfBytes {
			// Of other runs, taken by other members or read before: nobody will
			// come for the most of it.
			clear(s.kept)
			s.bytes = 0
		}
		next := spot{at.place, more.offset}
		if _, ok := s.kept[next]; !ok {
			s.kept[next] = more
			s.bytes += len(more.value)
		}
	}
	return list[0], nil
}

func (s *shelf) fetch(ctx, owner context.Context, at spot, mostBytes int64) ([]record, error) {
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(owner, cancel)
	defer stop()
	topic := at.topic(s.journal.run)
	for said := false; ; {
		list, err := s.journal.bus.fetch(both, topic, at.partition, at.offset, mostBytes, followWait)
		if err == nil && len(list) > 0 && list[0].offset == at.offset {
			return list, nil
		}
		if err := client.Ended(ctx, owner); err != nil {
			return nil, err
		}
		if errors.Is(err, kafka.OffsetOutOfRange) || err == nil && len(list) > 0 || at.retries != "" && isUnknown(err) {
			return nil, fmt.Errorf("kafka: a payload is gone from topic %s partition %d offset %d: %w", topic, at.partition, at.offset, events.ErrPosition)
		}
		if !said && isRefusal(err) { // of an outage the journal's follower tells
			said = true
			s.journal.bus.logger.Warn("kafka: the brokers do not give a payload, trying again", "run", s.journal.run, "topic", topic, "error", err)
		}
		if err := client.Pause(ctx, owner, retryPause); err != nil {
			return nil, err
		}
	}
}
