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

// Headers of a copy in the topic of dead letters, beside those of the message.
const (
	headerDeadID       = "codea1_deadletter" // what the dead letter is called; see events.DeadLetterID
	headerDeadSet      = "codea1_set"
	headerDeadAttempts = "codea1_attempts"
	headerDeadError    = "codea1_error"
)

// copyTimeout is how long a copy of a dead letter is tried to be stored.
const copyTimeout = 10 * time.Second

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
	both, release := client.Both(ctx, c.bus.ctx)
	defer release()
	limited, cancel := context.WithTimeout(both, copyTimeout)
	defer cancel()
	err := c.bus.produceDead(limited, c.journal.run, d, n)
	if ended := client.Ended(ctx, c.bus.ctx); err == nil || ended != nil {
		return ended
	}
	c.bus.logger.Error("kafka: a dead letter has no copy for taps", "run", c.journal.run, "set", c.config.Name,
		"event", d.message.ID, "topic", deadTopic(c.journal.run), "error", err)
	return nil
}

// produceDead stores the copy, in a topic that it creates when there is none.
func (b *Bus) produceDead(ctx context.Context, run string, d *delivery, n *note) error {
	topic, set := deadTopic(run), d.consumer.config.Name
	for {
		r := toKafka(&d.message)
		for _, h := range [][2]string{
			{headerDeadID, events.DeadLetterID(set, d.message.ID, d.round)},
			{headerDeadSet, set},
			{headerDeadAttempts, strconv.Itoa(d.attempt)},
			{headerDeadError, n.Reason},
		} {
			r.Headers = append(r.Headers, kafka.Header{Key: h[0], Value: []byte(h[1])})
		}
		_, err := b.produce(ctx, topic, 0, []kafka.Record{r})
		if isUnknown(err) {
			err = errors.Join(err, b.create(ctx, b.topicConfig(topic, 1)))
		}
		if err == nil || isFinal(err) || errors.Is(err, kafka.MessageSizeTooLarge) || client.Pause(ctx, b.ctx, retryPause/4) != nil {
			return err
		}
	}
}
