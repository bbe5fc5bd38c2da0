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

// maxFetch bounds one Fetch.
const maxFetch = 1024

// Consume implements events.Bus: it joins the set config.Name of the run.
// Redelivery is unlimited; who consumes decides when to give up.
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
	j, err := b.journal(ctx, config.Run)
	if err != nil {
		return nil, fmt.Errorf("kafka: consume %s of run %s: %w", config.Name, config.Run, err)
	}
	var token [8]byte
	_, _ = rand.Read(token[:])
	c := &consumer{
		bus: b, journal: j, config: config, member: hex.EncodeToString(token[:]),
		given: make(map[int64]int), shelf: newShelf(j),
	}
	c.session = client.NewSession()
	c.ctx = c.session.Context()
	if err := c.tell(ctx, note{Verb: verbJoin, Types: config.Types}); err != nil {
		return nil, err
	}
	if err := b.life.Track(c); err != nil {
		return nil, err
	}
	j.marks.add(config.Name)
	return c, nil
}

// consumer is one member of a set.
type consumer struct {
	bus     *Bus
	journal *journal
	config  events.ConsumeConfig
	member  string // a name of its own in the journal
	session *client.Session
	ctx     context.Context // of the session

	given map[int64]int // messages handed out and held: attempt by journal offset
	lost  int           // claims in a row that other members were faster with
	shelf *shelf
}

// tell stores a note of the set and waits until it has taken effect here.
func (c *consumer) tell(ctx context.Context, n note) error {
	n.Set, n.Member = c.config.Name, c.member
	stored := make(chan int64, 1)
	if err := c.journal.enqueue(ctx, n, stored); err != nil {
		return err
	}
	select {
	case end := <-stored:
		return c.journal.wait(ctx, c.ctx, end)
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ctx.Done():
		return events.ErrClosed
	case <-c.bus.ctx.Done():
		return events.ErrClosed
	}
}

// view is what a consumer sees in the ledger at one moment.
type view struct {
	mine    []holding // held and not handed out
	free    []item    // may be claimed
	next    time.Time // when the next lease or delay ends; zero for never
	changed <-chan struct{}
	failed  error
}

func (c *consumer) look(most int) view {
	var v view
	v.changed = c.journal.look(func(l *ledger) {
		v.failed = c.journal.failed
		s := l.sets[c.config.Name]
		held := make(map[int64]int)
		for _, h := range l.heldBy(c.config.Name, c.member) {
			if attempt, ok := c.given[h.at]; ok && attempt == h.attempt {
				held[h.at] = attempt
			} else {
				v.mine = append(v.mine, h)
			}
		}
		c.given = held
		if want := most - len(v.mine); want > 0 {
			// Members that all claim the oldest message get one between them.
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

// Fetch implements events.Consumer. It claims only what it returns; what a
// Fetch has claimed when its context ends belongs to the next one.
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
	var until time.Time // when lingering ends
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
				continue // what came was no event
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

// claim returns what the member holds and has not handed out, after having
// claimed up to most messages where some are free.
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
	if err := c.tell(ctx, note{Verb: verbClaim, MaxInFlight: c.config.MaxInFlight, Items: v.free}); err != nil {
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

// await blocks until the ledger changes or the time wake has come, when there
// is one. With messages free it returns at once.
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

// deliver fetches the payload of a message that the member holds: its copy in
// the retry topic, or where it has none or that was deleted, the original. One
// that is no event will not become one by being delivered again: it is finished
// here and reported.
func (c *consumer) deliver(ctx context.Context, h holding, mostBytes int64) (*delivery, error) {
	d := &delivery{consumer: c, at: h.at, round: h.round, attempt: h.attempt}
	var failed error // where it was looked for last
	for _, at := range h.spots() {
		var payload record
		if payload, failed = c.shelf.take(ctx, c.ctx, at, mostBytes); errors.Is(failed, events.ErrPosition) {
			continue
		}
		if failed != nil {
			return nil, failed
		}
		if d.message, failed = payload.message(c.journal.run, &h.entry); failed == nil {
			c.given[h.at] = h.attempt
			return d, nil
		}
	}
	if errors.Is(failed, events.ErrPosition) {
		return nil, failed
	}
	c.bus.logger.Error("kafka: dropped a payload that is no event", "run", c.journal.run, "error", failed)
	return nil, d.say(ctx, note{Verb: verbFinish})
}

// Close implements events.Consumer. What was claimed and not handed out is
// free at once; unanswered deliveries go to other members when their AckWait
// has passed.
func (c *consumer) Close() error {
	c.session.Close(func() {
		v := c.look(maxFetch)
		if len(v.mine) > 0 {
			n := note{Verb: verbRelease, Set: c.config.Name, Member: c.member}
			for _, h := range v.mine {
				n.Items = append(n.Items, item{At: h.at, Turn: h.attempt})
			}
			limited, cancel := context.WithTimeout(context.Background(), closeTimeout)
			defer cancel()
			_ = c.journal.enqueue(limited, n, nil) // or its lease ends
		}
		c.bus.life.Forget(c)
	})
	return nil
}

// delivery is a message that a member holds.
type delivery struct {
	consumer *consumer
	message  events.Message
	at       int64 // journal offset of its note
	round    int   // 1, or one more than the dead letter that was redelivered
	attempt  int
}

var _ events.Delivery = (*delivery)(nil)

// Message implements events.Delivery.
func (d *delivery) Message() events.Message { return d.message }

// Number implements events.Delivery.
func (d *delivery) Number() int { return d.attempt }

// Ack implements events.Delivery. The answer is queued, not stored yet.
func (d *delivery) Ack(ctx context.Context) error { return d.say(ctx, note{Verb: verbFinish}) }

// Drop implements events.Delivery, as Ack does.
func (d *delivery) Drop(ctx context.Context) error { return d.say(ctx, note{Verb: verbFinish}) }

// Retry implements events.Delivery.
func (d *delivery) Retry(ctx context.Context, after time.Duration) error {
	n := note{Verb: verbRetry, Wait: max(after, 0)}
	if n.Wait > 0 {
		if err := d.copyRetry(ctx, &n); err != nil {
			return err
		}
	}
	return d.say(ctx, n)
}

// Extend implements events.Delivery.
func (d *delivery) Extend(ctx context.Context) error { return d.say(ctx, note{Verb: verbExtend}) }

// DeadLetter implements events.Delivery.
func (d *delivery) DeadLetter(ctx context.Context, reason string) error {
	stored := make(chan int64, 1)
	n := note{Verb: verbDead, Group: d.message.Group, Round: d.round, Reason: events.ClipReason(reason), Time: time.Now().UTC()}
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
	case <-d.consumer.journal.ctx.Done():
		return events.ErrClosed
	}
}

func (d *delivery) say(ctx context.Context, n note) error { return d.enqueue(ctx, n, nil) }

func (d *delivery) enqueue(ctx context.Context, n note, stored chan int64) error {
	c := d.consumer
	if err := client.Ended(ctx, c.bus.ctx); err != nil {
		return err
	}
	n.Set, n.Member, n.Items = c.config.Name, c.member, []item{{At: d.at, Turn: d.attempt}}
	if err := c.journal.enqueue(ctx, n, stored); err != nil {
		return fmt.Errorf("kafka: %s %s %s: %w", n.Verb, d.message.Type, d.message.Group, err)
	}
	return nil
}
