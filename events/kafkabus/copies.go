package kafkabus

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"codea1/events"
	"codea1/events/internal/client"
)

// Headers of a copy, in addition to those of the message.
const (
	headerDeadID     = "codea1_deadletter" // events.DeadLetterID
	headerSet        = "codea1_set"
	headerDeliveries = "codea1_deliveries"
	headerError      = "codea1_error"
)

const (
	// copyTimeout bounds the time to store a copy. A copy gets at most half the
	// time of its answer, so that the change can still be stored.
	copyTimeout = 10 * time.Second
	// copyPause is the time without copies after a topic could not be written.
	// The messages of a batch must not wait one after the other.
	copyPause = time.Minute
)

// copyDead stores a copy of a dead letter for other Kafka clients. It does so
// before the change: a member that dies in between leaves an extra copy, not a
// missing one. If the copy fails, only the control topic has the dead letter.
func (d *delivery) copyDead(ctx context.Context, n *change) error {
	c := d.consumer
	finished := false
	c.control.look(func(l *ledger) {
		i, _ := l.index(d.at)
		finished = l.sets[c.config.Name].isFinished(i)
	})
	if finished {
		return nil // another delivery of it was answered
	}
	_, err := c.control.copy(ctx, deadTopic(c.control.run), &d.message,
		copyHeader(headerDeadID, events.DeadLetterID(c.config.Name, d.message.ID, d.round)),
		copyHeader(headerSet, c.config.Name),
		copyHeader(headerDeliveries, strconv.Itoa(d.number)),
		copyHeader(headerError, n.Reason),
	)
	return err
}

// copyRetry stores a copy of a retried event in the retry topic of its worker
// set, and names it in the change. An event has at most one copy. Without a
// copy it waits in its payload topic.
func (d *delivery) copyRetry(ctx context.Context, n *change) error {
	c := d.consumer
	wanted := false
	c.control.look(func(l *ledger) {
		i, _ := l.index(d.at)
		s := l.sets[c.config.Name]
		held := s.claims[i]
		_, copied := s.copies[i]
		wanted = !copied && held != nil && held.holder == c.member && held.number == d.number
	})
	if !wanted {
		return nil
	}
	var err error
	n.Copy, err = c.control.copy(ctx, retryTopic(c.control.run, c.config.Name), &d.message,
		copyHeader(headerSet, c.config.Name), copyHeader(headerDeliveries, strconv.Itoa(d.number)))
	return err
}

func copyHeader(name, value string) kafka.Header {
	return kafka.Header{Key: name, Value: []byte(value)}
}

// copy stores a copy of a message with additional headers, in a topic of one
// partition that it creates if missing, and returns its offset. On a failure it
// logs and returns nil, and tries no copy in that topic for copyPause: nothing
// depends on copies. It returns an error only if ctx or the bus has ended.
func (ctl *control) copy(ctx context.Context, topic string, m *events.Message, headers ...kafka.Header) (*int64, error) {
	if ctl.skipsCopies(topic) {
		return nil, nil
	}
	both, release := client.Both(ctx, ctl.bus.ctx)
	defer release()
	patience := copyTimeout
	if end, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(end)/2)
	}
	limited, cancel := context.WithTimeout(both, patience)
	defer cancel()
	var refused error // the broker's last refusal; a try that the deadline cuts off is none
	for {
		r := toKafka(m)
		r.Headers = append(r.Headers, headers...)
		offset, err := ctl.bus.produce(limited, topic, 0, []kafka.Record{r})
		if err == nil {
			return &offset, nil
		}
		if isUnknown(err) {
			err = errors.Join(err, ctl.bus.create(limited, ctl.bus.topicConfig(topic, 1)))
		}
		if !isOutage(err) {
			refused = err
		}
		if !isFinal(err) && !errors.Is(err, kafka.MessageSizeTooLarge) && client.Pause(limited, ctl.bus.ctx, retryPause/4) == nil {
			continue
		}
		if ended := client.Ended(ctx, ctl.bus.ctx); ended != nil {
			return nil, ended
		}
		var pause time.Duration
		if !errors.Is(err, kafka.MessageSizeTooLarge) {
			pause = copyPause
			ctl.skipCopies(topic, pause)
		}
		if refused == nil {
			return nil, nil // the outage is logged
		}
		ctl.bus.logger.Error("kafka: cannot copy a message for other tools", "run", ctl.run, "event", m.ID, "topic", topic, "again_in", pause, "error", refused)
		return nil, nil
	}
}

// skipCopies stops copies to a topic for a while.
func (ctl *control) skipCopies(topic string, pause time.Duration) {
	ctl.mu.Lock()
	defer ctl.mu.Unlock()
	ctl.skipped[topic] = time.Now().Add(pause)
}

func (ctl *control) skipsCopies(topic string) bool {
	ctl.mu.Lock()
	defer ctl.mu.Unlock()
	return time.Now().Before(ctl.skipped[topic])
}
