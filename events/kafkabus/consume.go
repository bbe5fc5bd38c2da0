package kafkabus

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"codea1/events"
	"codea1/events/internal/client"
)

// maxFetch bounds the deliveries of one Fetch.
const maxFetch = 1024

// Consume implements events.Bus: it joins the worker set config.Name of the
// run. The bus redelivers without a limit; the consumer decides when to give
// up.
func (b *Bus) Consume(ctx context.Context, config events.ConsumeConfig) (events.Consumer, error) {
	if err := client.Ended(ctx, b.ctx); err != nil {
		return nil, err
	}
	if err := events.ValidName(config.Name); err != nil {
		return nil, err
	}
	if config.AckWait <= 0 || config.MaxInFlight < 1 {
		return nil, fmt.Errorf("kafka: consume %s: ack wait %v and max in flight %d must be positive",
			config.Name, config.AckWait, config.MaxInFlight)
	}
	if len(config.Types) == 0 {
		config.Types = events.Types()
	}
	ctl, err := b.control(ctx, config.Run)
	if err != nil {
		return nil, fmt.Errorf("kafka: consume %s of run %s: %w", config.Name, config.Run, err)
	}
	var token [8]byte
	_, _ = rand.Read(token[:])
	c := &consumer{
		bus: b, control: ctl, config: config, member: hex.EncodeToString(token[:]),
		given: make(map[int64]int), payloads: newPayloadReader(ctl),
	}
	c.session = client.NewSession()
	c.ctx = c.session.Context()
	if err := c.storeAndWait(ctx, change{Kind: kindJoin, Types: config.Types}); err != nil {
		return nil, err
	}
	if err := b.life.Track(c); err != nil {
		return nil, err
	}
	ctl.committer.add(config.Name)
	return c, nil
}

// consumer is one member of a worker set.
type consumer struct {
	bus     *Bus
	control *control
	config  events.ConsumeConfig
	member  string // random, unique in the control topic
	session *client.Session
	ctx     context.Context // ends with Close

	given    map[int64]int // held events that were delivered: delivery number by control offset
	lost     int           // claims in a row that other members won
	payloads *payloadReader
}

// storeAndWait stores a change of the worker set and waits until the ledger has
// it.
func (c *consumer) storeAndWait(ctx context.Context, n change) error {
	n.Set, n.Member = c.config.Name, c.member
	stored := make(chan int64, 1)
	if err := c.control.enqueue(ctx, n, stored); err != nil {
		return err
	}
	select {
	case end := <-stored:
		return c.control.wait(ctx, c.ctx, end)
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ctx.Done():
		return events.ErrClosed
	case <-c.bus.ctx.Done():
		return events.ErrClosed
	}
}

// view is the state of the ledger for a consumer at one moment.
type view struct {
	mine    []holding // held and not delivered
	free    []item    // may be claimed
	next    time.Time // end of the next claim or delay; zero for none
	changed <-chan struct{}
	failed  error
}

func (c *consumer) look(most int) view {
	var v view
	v.changed = c.control.look(func(l *ledger) {
		v.failed = c.control.failed
		s := l.sets[c.config.Name]
		held := make(map[int64]int)
		for _, h := range l.heldBy(c.config.Name, c.member) {
			if number, ok := c.given[h.at]; ok && number == h.number {
				held[h.at] = number
			} else {
				v.mine = append(v.mine, h)
			}
		}
		c.given = held
		if want := most - len(v.mine); want > 0 {
			// If all members claim the oldest events, most of them get none.
			skip := 0
			if c.lost > 0 {
				skip = mathrand.IntN(1 + most*min(c.lost, 16))
			}
			v.free, v.next = l.free(s, want, skip, c.config.MaxInFlight, c.config.AckWait, time.Now())
		}
	})
	if len(v.mine) > most {
		v.mine = v.mine[:most]
	}
	return v
}

// Fetch implements events.Consumer. It claims no more than it returns. If ctx
// ends after a claim, the next Fetch returns the claimed events.
func (c *consumer) Fetch(ctx context.Context, most int, linger time.Duration) ([]events.Delivery, error) {
	if most < 1 {
		return nil, fmt.Errorf("kafka: fetch: most is %d, want 1 or more", most)
	}
	most = min(most, maxFetch)
	if err := c.session.Begin(ctx); err != nil {
		return nil, err
	}
	defer c.session.End()
	var got []events.Delivery
	var until time.Time // end of lingering
	for {
		v, err := c.claim(ctx, most-len(got))
		bytes := int64(maxHeaderBytes)
		for _, h := range v.mine {
			bytes = min(bytes+int64(h.bytes), readBytes)
		}
		for _, h := range v.mine {
			if err != nil {
				break
			}
			var d *delivery
			if d, err = c.deliver(ctx, h, bytes); d != nil {
				got = append(got, d)
			}
		}
		if len(got) == 0 {
			if err != nil {
				return nil, err
			}
			if len(v.mine) > 0 {
				continue // the payloads were malformed
			}
			if err := c.await(ctx, &v, v.next); err != nil {
				return nil, err
			}
			continue
		}
		if until.IsZero() {
			until = time.Now().Add(linger)
		}
		if err != nil || len(got) == most || !time.Now().Before(until) {
			return got, nil
		}
		if len(v.mine) == 0 {
			wake := until
			if !v.next.IsZero() && v.next.Before(until) {
				wake = v.next
			}
			if c.await(ctx, &v, wake) != nil {
				return got, nil
			}
		}
	}
}

// claim returns the events that the member holds and has not delivered. If
// there are none, it claims up to most free ones first.
func (c *consumer) claim(ctx context.Context, most int) (view, error) {
	if err := client.Ended(ctx, c.ctx); err != nil {
		return view{}, err
	}
	v := c.look(most)
	if v.failed != nil {
		return view{}, v.failed
	}
	if len(v.mine) > 0 || len(v.free) == 0 {
		return v, nil
	}
	if err := c.storeAndWait(ctx, change{Kind: kindClaim, MaxInFlight: c.config.MaxInFlight, Items: v.free}); err != nil {
		return view{}, err
	}
	v = c.look(most)
	if len(v.mine) > 0 {
		c.lost = 0
	} else {
		c.lost++
	}
	return v, v.failed
}

// await blocks until the ledger changes, or until wake if it is not zero. It
// returns at once if events are free.
func (c *consumer) await(ctx context.Context, v *view, wake time.Time) error {
	if len(v.free) > 0 {
		return client.Ended(ctx, c.ctx)
	}
	var alarm <-chan time.Time
	if !wake.IsZero() {
		timer := time.NewTimer(time.Until(wake))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-v.changed:
		return nil
	case <-alarm:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ctx.Done():
		return events.ErrClosed
	}
}

// deliver reads the payload of a held event: its copy in the retry topic, or
// the original if there is no copy. A malformed payload is logged and finished,
// because a redelivery would not change it.
func (c *consumer) deliver(ctx context.Context, h holding, mostBytes int64) (*delivery, error) {
	d := &delivery{consumer: c, at: h.at, round: h.round, number: h.number}
	var failed error // of the last location
	for _, at := range h.locations() {
		var payload record
		if payload, failed = c.payloads.take(ctx, c.ctx, at, mostBytes); errors.Is(failed, events.ErrPosition) || errors.Is(failed, events.ErrMalformed) {
			continue
		}
		if failed != nil {
			return nil, failed
		}
		if d.message, failed = payload.message(c.control.run, &h.storedEvent); failed != nil {
			continue
		}
		if h.replaces > 0 {
			counts, err := c.control.counts(ctx, c.payloads, &h.storedEvent, &d.message)
			if err != nil {
				return nil, err
			}
			if !counts {
				failed = errReplaces
				break
			}
		}
		c.given[h.at] = h.number
		return d, nil
	}
	if errors.Is(failed, events.ErrPosition) {
		return nil, failed
	}
	c.bus.logger.Error("kafka: dropped a malformed payload", "run", c.control.run, "error", failed)
	return nil, d.answer(ctx, change{Kind: kindFinish})
}

// Close implements events.Consumer. Events that are claimed and not delivered
// become free at once; unanswered deliveries go to other members after AckWait.
func (c *consumer) Close() error {
	c.session.Close(func() {
		v := c.look(maxFetch)
		if len(v.mine) > 0 {
			n := change{Kind: kindRelease, Set: c.config.Name, Member: c.member}
			for _, h := range v.mine {
				n.Items = append(n.Items, item{At: h.at, Turn: h.number})
			}
			limited, cancel := context.WithTimeout(context.Background(), closeTimeout)
			defer cancel()
			_ = c.control.enqueue(limited, n, nil) // otherwise the claim expires
		}
		c.bus.life.Forget(c)
	})
	return nil
}

// delivery is an event that a member holds.
type delivery struct {
	consumer *consumer
	message  events.Message
	at       int64 // control offset of the event change
	round    int   // 1, or 1 more than that of the redelivered dead letter
	number   int
}

var _ events.Delivery = (*delivery)(nil)

// Message implements events.Delivery.
func (d *delivery) Message() events.Message { return d.message }

// Number implements events.Delivery.
func (d *delivery) Number() int { return d.number }

// Ack implements events.Delivery. It queues the answer and returns before it is
// stored.
func (d *delivery) Ack(ctx context.Context) error { return d.answer(ctx, change{Kind: kindFinish}) }

// Retry implements events.Delivery.
func (d *delivery) Retry(ctx context.Context, after time.Duration) error {
	n := change{Kind: kindRetry, Wait: max(after, 0)}
	if n.Wait > 0 {
		if err := d.copyRetry(ctx, &n); err != nil {
			return err
		}
	}
	return d.answer(ctx, n)
}

// Extend implements events.Delivery.
func (d *delivery) Extend(ctx context.Context) error { return d.answer(ctx, change{Kind: kindExtend}) }

// DeadLetter implements events.Delivery.
func (d *delivery) DeadLetter(ctx context.Context, reason string) error {
	stored := make(chan int64, 1)
	n := change{Kind: kindDeadLetter, Group: d.message.Group, Round: d.round, Reason: events.ClipReason(reason), Time: time.Now().UTC()}
	if err := d.copyDead(ctx, &n); err != nil {
		return err
	}
	if err := d.enqueue(ctx, n, stored); err != nil {
		return err
	}
	select {
	case <-stored:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-d.consumer.control.ctx.Done():
		return events.ErrClosed
	}
}

func (d *delivery) answer(ctx context.Context, n change) error { return d.enqueue(ctx, n, nil) }

func (d *delivery) enqueue(ctx context.Context, n change, stored chan int64) error {
	c := d.consumer
	if err := client.Ended(ctx, c.bus.ctx); err != nil {
		return err
	}
	n.Set, n.Member, n.Items = c.config.Name, c.member, []item{{At: d.at, Turn: d.number}}
	if err := c.control.enqueue(ctx, n, stored); err != nil {
		return fmt.Errorf("kafka: %s %s %s: %w", n.Kind, d.message.Type, d.message.Group, err)
	}
	return nil
}
