package natsbus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
	"codea1/events/internal/client"
)

const (
	// maxFetch bounds the deliveries of one Fetch.
	maxFetch = 1024
	// minLinger is the shortest time for which a request stays open. The server
	// does not answer a request without waiting while the worker set has
	// MaxInFlight unanswered messages.
	minLinger = time.Millisecond
	// maxLinger bounds a wait that only the server ends, and so the wait of
	// Close and of an ended context for a Fetch.
	maxLinger = 5 * time.Second
)

// Consume implements events.Bus: it joins the durable pull consumer config.Name
// of the run, and creates it if it is missing. The bus redelivers without a
// limit; the consumer decides when to give up.
func (b *Bus) Consume(ctx context.Context, config events.ConsumeConfig) (events.Consumer, error) {
	if err := client.Ended(ctx, b.ctx); err != nil {
		return nil, err
	}
	if err := validNames(config.Run, config.Name); err != nil {
		return nil, err
	}
	if config.AckWait <= 0 || config.MaxInFlight < 1 {
		return nil, fmt.Errorf("nats: consume %s: ack wait %v and max in flight %d must be positive",
			config.Name, config.AckWait, config.MaxInFlight)
	}
	stream, err := b.stream(ctx, config.Run)
	if err != nil {
		return nil, err
	}
	var durable jetstream.Consumer
	err = b.ask(ctx, func(ctx context.Context) error {
		var err error
		durable, err = stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable:        config.Name,
			DeliverPolicy:  jetstream.DeliverAllPolicy,
			AckPolicy:      jetstream.AckExplicitPolicy,
			AckWait:        config.AckWait,
			MaxDeliver:     -1,
			MaxAckPending:  config.MaxInFlight,
			FilterSubjects: append(filterOf(config.Run, config.Types), letterSubjects(config.Run, retryToken, config.Name)),
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("nats: consume %s of run %s: %w", config.Name, config.Run, err)
	}
	c := &consumer{bus: b, run: config.Run, name: config.Name, durable: durable}
	c.session = client.NewSession()
	c.ctx = c.session.Context()
	if err := b.life.Track(c); err != nil {
		return nil, err
	}
	return c, nil
}

type consumer struct {
	bus     *Bus
	run     string
	name    string
	durable jetstream.Consumer
	session *client.Session
	ctx     context.Context // ends with Close

	// waiting is a request for one message that has no answer yet. If the
	// context of its Fetch ends, the next Fetch returns the answer.
	waiting *request
}

type request struct {
	batch  jetstream.MessageBatch
	cancel context.CancelFunc
}

// requestWait bounds the time for which a request stays open without a message.
// A server forgets after 2 minutes where the answer to a request from another
// account goes.
const requestWait = time.Minute

// forRequest returns the context of a request: the server ends the request
// shortly before the context ends.
func forRequest(owner, live context.Context) (context.Context, context.CancelFunc) {
	both, cancelBoth := client.Both(owner, live)
	ctx, cancel := context.WithTimeout(both, requestWait)
	return ctx, func() { cancel(); cancelBoth() }
}

// Fetch implements events.Consumer. It requests no more than it returns, so no
// message waits here while its AckWait runs. It waits until a lost connection
// is back. It lingers 5 s at most.
func (c *consumer) Fetch(ctx context.Context, most int, linger time.Duration) ([]events.Delivery, error) {
	if most < 1 {
		return nil, fmt.Errorf("nats: fetch: most is %d, want 1 or more", most)
	}
	most = min(most, maxFetch)
	if err := c.session.Begin(ctx); err != nil {
		return nil, err
	}
	defer c.session.End()
	for {
		deliveries, err := c.next(ctx, most, min(max(linger, minLinger), maxLinger))
		if err != nil || len(deliveries) > 0 {
			return deliveries, err
		}
		// The message was malformed.
	}
}

// next requests a whole batch first, which is one round trip if there is a
// backlog. If there is no message, it waits for one, and then requests the rest
// of the batch.
func (c *consumer) next(ctx context.Context, most int, linger time.Duration) ([]events.Delivery, error) {
	asking, release := client.Both(ctx, c.ctx)
	defer release()
	for {
		if err := client.Ended(ctx, c.ctx); err != nil {
			return nil, err
		}
		if c.waiting == nil {
			live, err := c.bus.link.wait(ctx, c.ctx)
			if err != nil {
				return nil, err
			}
			if most > 1 {
				var got []events.Delivery
				if got, err = c.batch(asking, most, linger, nil); len(got) > 0 {
					return got, nil
				}
			}
			if err == nil {
				err = c.request(live)
			}
			if err != nil {
				if err := c.recover(asking, err); err != nil {
					return nil, err
				}
				continue
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.ctx.Done():
			return nil, events.ErrClosed
		case msg, ok := <-c.waiting.batch.Messages():
			w := c.waiting
			c.waiting = nil
			w.cancel()
			if ok {
				got := c.deliver(asking, msg, nil)
				if most > 1 {
					// An error here comes again in the next Fetch.
					got, _ = c.batch(asking, most-1, linger, got)
				}
				return got, nil
			}
			if err := w.batch.Error(); err != nil {
				if err := c.recover(asking, err); err != nil {
					return nil, err
				}
			}
		}
	}
}

// batch appends up to most deliveries that come within linger. The server ends
// the wait, so no message is under way after it.
func (c *consumer) batch(ctx context.Context, most int, linger time.Duration, into []events.Delivery) ([]events.Delivery, error) {
	batch, err := c.durable.Fetch(most, jetstream.FetchMaxWait(linger))
	if err != nil {
		return into, err
	}
	for msg := range batch.Messages() {
		into = c.deliver(ctx, msg, into)
	}
	return into, batch.Error()
}

// request requests one message.
func (c *consumer) request(live context.Context) error {
	ctx, cancel := forRequest(c.ctx, live)
	batch, err := c.durable.Fetch(1, jetstream.FetchContext(ctx))
	if err != nil {
		cancel()
		return err
	}
	c.waiting = &request{batch, cancel}
	return nil
}

// deliver appends the delivery of msg. It logs and drops a malformed message,
// because a redelivery would not change it.
func (c *consumer) deliver(ctx context.Context, msg jetstream.Msg, into []events.Delivery) []events.Delivery {
	meta, err := msg.Metadata()
	if err == nil {
		d := &delivery{bus: c.bus, msg: msg, name: c.name, round: 1, number: int(meta.NumDelivered)}
		if isRedelivery(c.run, msg.Subject()) {
			d.message, d.round, err = c.bus.redelivered(ctx, c.run, msg)
		} else {
			d.message, err = c.bus.fromNATS(ctx, msg, meta.Sequence.Stream)
		}
		if err == nil {
			return append(into, d)
		}
	}
	if errors.Is(err, errLater) {
		_ = msg.NakWithDelay(retryPause) // otherwise AckWait redelivers it
		return into
	}
	c.bus.logger.Error("nats: dropped a malformed message", "error", err)
	if err := msg.Term(); err != nil {
		c.bus.logger.Warn("nats: drop", "error", err)
	}
	return into
}

// recover waits after a temporary error, and returns any other error.
func (c *consumer) recover(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, nats.ErrConnectionClosed):
		return events.ErrClosed
	case errors.Is(err, nats.ErrNoResponders):
		// JetStream is not up yet, or the consumer was deleted.
		err = c.bus.ask(ctx, func(ctx context.Context) error {
			_, err := c.durable.Info(ctx)
			return err
		})
	}
	for _, final := range []error{jetstream.ErrConsumerDeleted, jetstream.ErrConsumerNotFound, jetstream.ErrStreamNotFound, jetstream.ErrBadRequest, nats.ErrPermissionViolation} {
		if errors.Is(err, final) {
			return fmt.Errorf("nats: fetch: %w", err)
		}
	}
	return client.Pause(ctx, c.ctx, retryPause)
}

// Close implements events.Consumer. Unanswered deliveries go to other members
// after AckWait.
func (c *consumer) Close() error {
	c.session.Close(func() {
		if w := c.waiting; w != nil {
			c.waiting = nil
			for msg := range w.batch.Messages() {
				_ = msg.Nak() // otherwise AckWait redelivers it
			}
			w.cancel()
		}
		c.bus.life.Forget(c)
	})
	return nil
}

type delivery struct {
	bus     *Bus
	msg     jetstream.Msg
	message events.Message
	name    string // worker set
	round   int    // 1, or 1 more than that of the redelivered dead letter
	number  int
}

var _ events.Delivery = (*delivery)(nil)

// Message implements events.Delivery.
func (d *delivery) Message() events.Message { return d.message }

// Number implements events.Delivery.
func (d *delivery) Number() int { return d.number }

// Ack implements events.Delivery. It returns before the server confirms it.
func (d *delivery) Ack(ctx context.Context) error { return d.answer(ctx, "ack", d.msg.Ack) }

// Retry implements events.Delivery.
func (d *delivery) Retry(ctx context.Context, after time.Duration) error {
	return d.answer(ctx, "retry", func() error { return d.msg.NakWithDelay(max(after, 0)) })
}

// Extend implements events.Delivery.
func (d *delivery) Extend(ctx context.Context) error {
	return d.answer(ctx, "extend", d.msg.InProgress)
}

func (d *delivery) answer(ctx context.Context, verb string, do func() error) error {
	if err := client.Ended(ctx, d.bus.ctx); err != nil {
		return err
	}
	if err := do(); err != nil {
		return fmt.Errorf("nats: %s %s %s: %w", verb, d.message.Type, d.message.Group, d.bus.orClosed(err))
	}
	return nil
}
