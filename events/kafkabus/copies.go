package kafkabus

import (
	"context"
	"errors"
	"strconv"
	"time"

	"codea1/events"
	"codea1/events/internal/client"

	"github.com/segmentio/kafka-go"
)

// Headers of a copy in the topic of dead letters or in one of retries, beside
// those of the message.
const (
	headerDeadID     = "codea1_deadletter" // what the dead letter is called; see events.DeadLetterID
	headerSet        = "codea1_set"
	headerDeliveries = "codea1_deliveries"
	headerError      = "codea1_error"
)

const (
	// copyTimeout is how long a copy is tried to be stored, and at most half of the
	// time that the answer has which it goes with: that must still be noted.
	copyTimeout = 10 * time.Second
	// copyPause is how long no other copy is tried in a topic that could not be
	// written: a batch of messages must not wait for one after the other.
	copyPause = time.Minute
)

// copyDead stores a copy of the message that this member gives up on, for who
// listens to Kafka. It comes before the note: a member that dies in between
// leaves a copy too many, not one too few. A topic that cannot be written does
// not keep the message from being given up: then the journal alone has it.
func (d *delivery) copyDead(ctx context.Context, n *note) error {
	c := d.consumer
	finished := false
	c.journal.look(func(l *ledger) {
		i, _ := l.index(d.at)
		finished = l.sets[c.config.Name].isFinished(i)
	})
	if finished {
		return nil // by who had it before or after
	}
	_, err := c.journal.copy(ctx, deadTopic(c.journal.run), &d.message,
		copyHeader(headerDeadID, events.DeadLetterID(c.config.Name, d.message.ID, d.round)),
		copyHeader(headerSet, c.config.Name),
		copyHeader(headerDeliveries, strconv.Itoa(d.attempt)),
		copyHeader(headerError, n.Reason),
	)
	return err
}

// copyRetry stores a copy of the message that this member puts off, in the retry
// topic of its set, and names it in the note. A message has one copy, however
// often it is put off; without one it waits where it is.
func (d *delivery) copyRetry(ctx context.Context, n *note) error {
	c := d.consumer
	wanted := false
	c.journal.look(func(l *ledger) {
		i, _ := l.index(d.at)
		s := l.sets[c.config.Name]
		held := s.claims[i]
		_, copied := s.copies[i]
		wanted = !copied && held != nil && held.holder == c.member && held.attempt == d.attempt
	})
	if !wanted {
		return nil
	}
	var err error
	n.Copy, err = c.journal.copy(ctx, retryTopic(c.journal.run, c.config.Name), &d.message,
		copyHeader(headerSet, c.config.Name), copyHeader(headerDeliveries, strconv.Itoa(d.attempt)))
	return err
}

func copyHeader(name, value string) kafka.Header {
	return kafka.Header{Key: name, Value: []byte(value)}
}

// copy stores a copy of a message with further headers, in a topic of one
// partition that it creates when there is none, and returns its offset. When
// that fails it says so in the log and returns nil, as for copyPause after it
// without another attempt: no work depends on copies. It returns an error only
// when ctx or the bus has ended.
func (j *journal) copy(ctx context.Context, topic string, m *events.Message, headers ...kafka.Header) (*int64, error) {
	if j.skipsCopies(topic) {
		return nil, nil
	}
	both, release := client.Both(ctx, j.bus.ctx)
	defer release()
	patience := copyTimeout
	if end, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(end)/2)
	}
	limited, cancel := context.WithTimeout(both, patience)
	defer cancel()
	for {
		r := toKafka(m)
		r.Headers = append(r.Headers, headers...)
		offset, err := j.bus.produce(limited, topic, 0, []kafka.Record{r})
		if err == nil {
			return &offset, nil
		}
		if isUnknown(err) {
			err = errors.Join(err, j.bus.create(limited, j.bus.topicConfig(topic, 1)))
		}
		if !isFinal(err) && !errors.Is(err, kafka.MessageSizeTooLarge) && client.Pause(limited, j.bus.ctx, retryPause/4) == nil {
			continue
		}
		if ended := client.Ended(ctx, j.bus.ctx); ended != nil {
			return nil, ended
		}
		var pause time.Duration
		if !errors.Is(err, kafka.MessageSizeTooLarge) {
			pause = copyPause
			j.skipCopies(topic, pause)
		}
		j.bus.logger.Error("kafka: a message has no copy for other tools", "run", j.run, "event", m.ID, "topic", topic, "again_in", pause, "error", err)
		return nil, nil
	}
}

// skipCopies lets no copy be tried in a topic for a while.
func (j *journal) skipCopies(topic string, pause time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.skipped[topic] = time.Now().Add(pause)
}

func (j *journal) skipsCopies(topic string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return time.Now().Before(j.skipped[topic])
}
