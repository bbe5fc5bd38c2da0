package kafkabus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"codea1/events"
	"codea1/events/internal/client"
)

const (
	// followBytes bounds one request for records.
	followBytes = 4 << 20
	// followWait is how long a broker waits for a record before it answers.
	followWait = 500 * time.Millisecond
	// newTopicGrace is how long brokers may not know a new topic without this
	// being an outage.
	newTopicGrace = 5 * time.Second
)

// tail reads a topic of one partition from its first record and folds the
// records.
type tail struct {
	bus   *Bus
	run   string
	topic string

	ctx    context.Context // ends the reading
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex
	fold    func(*record) // called with mu locked
	end     int64         // offset after the last folded record
	failed  error         // why the reading has ended
	changed chan struct{} // closed at the next change
}

// perRun returns the reader of a topic of a run. A bus has one; open makes it.
func perRun[T any](ctx context.Context, b *Bus, all *map[string]T, run, topic string, open func(*tail) T) (T, error) {
	var none T
	b.mu.Lock()
	found, ok := (*all)[run]
	b.mu.Unlock()
	if ok {
		return found, nil
	}
	if err := events.ValidName(run); err != nil {
		return none, err
	}
	t, err := b.newTail(ctx, run, topic)
	if err != nil {
		return none, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if found, ok := (*all)[run]; ok || b.ctx.Err() != nil {
		t.cancel()
		if !ok {
			return none, events.ErrClosed
		}
		return found, nil
	}
	made := open(t)
	(*all)[run] = made
	return made, nil
}

// newTail creates the topic if it is missing and waits until the brokers know
// it.
func (b *Bus) newTail(ctx context.Context, run, topic string) (*tail, error) {
	if err := b.ask(ctx, func() error { return b.create(ctx, b.topicConfig(topic, 1)) }); err != nil {
		return nil, err
	}
	// The brokers do not know a new topic at once.
	if _, err := b.end(ctx, topic); err != nil {
		return nil, err
	}
	t := &tail{bus: b, run: run, topic: topic, changed: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t, nil
}

// isUnknown reports whether a broker or this client does not know a topic or
// its leader yet.
func isUnknown(err error) bool {
	for _, unknown := range []error{
		kafka.UnknownTopicOrPartition, kafka.LeaderNotAvailable, kafka.NotLeaderForPartition,
		protocol.ErrNoTopic, protocol.ErrNoPartition, protocol.ErrNoLeader,
	} {
		if errors.Is(err, unknown) {
			return true
		}
	}
	return false
}

// wait blocks until the records before offset end are folded.
func (t *tail) wait(ctx, owner context.Context, end int64) error {
	for {
		t.mu.Lock()
		reached, failed, changed := t.end >= end, t.failed, t.changed
		t.mu.Unlock()
		if reached {
			return nil
		}
		if failed != nil {
			return failed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-owner.Done():
			return events.ErrClosed
		}
	}
}

// follow folds records until ctx ends.
func (t *tail) follow() {
	var wait client.Wait
	defer wait.End(false)
	for offset := int64(0); t.ctx.Err() == nil; {
		list, err := t.bus.fetch(t.ctx, t.topic, 0, offset, followBytes, followWait)
		switch {
		case t.ctx.Err() != nil:
			return
		case errors.Is(err, kafka.OffsetOutOfRange):
			t.fail(fmt.Errorf("kafka: run %s: %w: topic %s ends before offset %d", t.run, events.ErrPosition, t.topic, offset))
			return
		case err != nil:
			t.bus.failed(&wait, err)
			_ = client.Pause(t.ctx, t.ctx, retryPause)
			continue
		}
		wait.End(true)
		if len(list) > 0 {
			t.take(list)
			offset = list[len(list)-1].offset + 1
		}
	}
}

func (t *tail) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = err
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *tail) take(list []record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range list {
		t.fold(&list[i])
	}
	t.end = list[len(list)-1].offset + 1
	close(t.changed)
	t.changed = make(chan struct{})
}
