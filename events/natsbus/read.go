package natsbus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
	"codea1/events/internal/client"
)

const (
	// readBatch and readBatchBytes bound the messages that a reader has
	// requested.
	readBatch      = 256
	readBatchBytes = 2 * maxMessageBytes
	// readerIdle is the time after which the server deletes the consumer of an
	// idle reader, for example while its owner trains a model. The reader then
	// makes a new one.
	readerIdle = 10 * time.Minute
)

// Read implements events.Bus. A Position is a decimal stream sequence.
func (b *Bus) Read(ctx context.Context, config events.ReadConfig) (events.Reader, error) {
	if err := client.Ended(ctx, b.ctx); err != nil {
		return nil, err
	}
	r := &reader{bus: b, run: config.Run, subjects: filterOf(config.Run, config.Types), malformed: config.Malformed, name: rand.Text()}
	if config.From != events.Start {
		var err error
		if r.last, err = strconv.ParseUint(string(config.From), 10, 63); err != nil {
			return nil, fmt.Errorf("nats: read run %s: position %q is not a stream sequence", config.Run, config.From)
		}
	}
	if _, err := b.stream(ctx, config.Run); err != nil {
		return nil, err
	}
	if config.New {
		s, err := b.findStream(ctx, config.Run)
		if err != nil {
			return nil, err
		}
		r.last = s.CachedInfo().State.LastSeq
	}
	if err := r.checkPosition(ctx); err != nil {
		return nil, err
	}
	r.session = client.NewSession()
	r.ctx = r.session.Context()
	if err := b.life.Track(r); err != nil {
		return nil, err
	}
	return r, nil
}

// reader reads through an ephemeral consumer without acknowledgements. After
// every irregularity (a gap in its numbering, a lost connection, no answer) it
// makes a new consumer that starts after the last returned message. All have one
// name, so that a reader never has more than one consumer on the server: a request
// without an answer may have made one, and a server refuses a stream's 1001st.
type reader struct {
	bus       *Bus
	run       string
	subjects  []string
	malformed bool // return malformed messages
	session   *client.Session
	ctx       context.Context // ends with Close

	last      uint64 // stream sequence of the last returned message
	name      string // of the consumer
	requested bool   // the server may have a consumer of this name
	consumer  jetstream.Consumer
	delivered uint64 // messages delivered by the consumer
	behind    atomic.Int64
	ahead     *request // requested messages
}

// Next implements events.Reader. It waits until a lost connection is back.
func (r *reader) Next(ctx context.Context) (events.Message, events.Position, error) {
	if err := r.session.Begin(ctx); err != nil {
		return events.Message{}, "", err
	}
	defer r.session.End()
	for {
		msg, err := r.next(ctx)
		if err != nil {
			return events.Message{}, "", err
		}
		m, err := r.bus.fromNATS(ctx, msg, r.last)
		if errors.Is(err, errLater) {
			r.abandon()
			r.last-- // it is read again
			if ended := client.Ended(ctx, r.ctx); ended != nil {
				err = ended
			}
			return events.Message{}, "", err
		}
		position := events.Position(strconv.FormatUint(r.last, 10))
		if err == nil {
			return m, position, nil
		}
		if r.malformed {
			return events.Message{}, position, malformed(msg, err)
		}
		r.bus.logger.Error("nats: skipped a malformed message", "position", r.last, "error", err)
	}
}

// Behind implements events.Lagging.
func (r *reader) Behind() int64 { return r.behind.Load() }

func (r *reader) next(ctx context.Context) (jetstream.Msg, error) {
	asking, release := client.Both(ctx, r.ctx)
	defer release()
	for {
		if err := client.Ended(ctx, r.ctx); err != nil {
			return nil, err
		}
		if r.ahead == nil {
			if err := r.ask(asking); err != nil {
				if err := r.recover(ctx, err); err != nil {
					return nil, err
				}
				continue
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-r.ctx.Done():
			return nil, events.ErrClosed
		case msg, ok := <-r.ahead.batch.Messages():
			if !ok {
				err := r.ahead.batch.Error()
				r.ahead.cancel()
				r.ahead = nil
				if err != nil {
					if err := r.recover(ctx, err); err != nil {
						return nil, err
					}
				}
				continue
			}
			meta, err := msg.Metadata()
			if err != nil || meta.Sequence.Consumer != r.delivered+1 {
				r.abandon()
				continue
			}
			r.delivered++
			r.last = meta.Sequence.Stream
			r.behind.Store(int64(min(meta.NumPending, math.MaxInt64)))
			return msg, nil
		}
	}
}

// ask requests the next messages. It makes a new consumer if there is none.
func (r *reader) ask(ctx context.Context) error {
	live, err := r.bus.link.wait(ctx, r.ctx)
	if err != nil {
		return err
	}
	if r.consumer == nil {
		if err := r.checkPosition(ctx); err != nil {
			return err
		}
		r.delivered = 0
		if err := r.bus.ask(ctx, r.create); err != nil {
			return err
		}
	}
	batchCtx, cancel := forRequest(r.ctx, live)
	batch, err := r.consumer.Fetch(readBatch, jetstream.FetchMaxBytes(readBatchBytes), jetstream.FetchContext(batchCtx))
	if err != nil {
		cancel()
		return err
	}
	r.ahead = &request{batch, cancel}
	return nil
}

// create makes the consumer on the server, in place of one that it may have.
func (r *reader) create(ctx context.Context) error {
	if err := r.delete(ctx); err != nil {
		return err
	}
	r.requested = true
	var err error
	r.consumer, err = r.bus.js.CreateConsumer(ctx, streamName(r.run), jetstream.ConsumerConfig{
		Name:              r.name,
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       r.last + 1,
		AckPolicy:         jetstream.AckNonePolicy,
		FilterSubjects:    r.subjects,
		InactiveThreshold: readerIdle,
		MemoryStorage:     true,
		Replicas:          1,
	})
	return err
}

// delete deletes the consumer on the server.
func (r *reader) delete(ctx context.Context) error {
	if !r.requested {
		return nil
	}
	err := r.bus.js.DeleteConsumer(ctx, streamName(r.run), r.name)
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return err
	}
	r.requested = false
	return nil
}

// checkPosition compares the position with the end of the stream on the server.
func (r *reader) checkPosition(ctx context.Context) error {
	if r.last == 0 {
		return nil
	}
	s, err := r.bus.findStream(ctx, r.run)
	if err != nil {
		return err
	}
	if end := s.CachedInfo().State.LastSeq; r.last > end {
		return fmt.Errorf("nats: read run %s: %w: position %d, end %d", r.run, events.ErrPosition, r.last, end)
	}
	return nil
}

// abandon drops the consumer and the messages that it has sent.
func (r *reader) abandon() {
	if w := r.ahead; w != nil {
		r.ahead = nil
		w.cancel()
		for range w.batch.Messages() { // until its goroutine has ended
		}
	}
	r.consumer = nil
}

// recover waits after a temporary error, and returns any other error.
func (r *reader) recover(ctx context.Context, err error) error {
	r.abandon()
	switch {
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, events.ErrClosed):
		return events.ErrClosed
	case errors.Is(err, events.ErrPosition):
		return err
	case errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrBadRequest), errors.Is(err, nats.ErrPermissionViolation):
		return fmt.Errorf("nats: read run %s: %w", r.run, err)
	}
	return client.Pause(ctx, r.ctx, retryPause)
}

// Close implements events.Reader.
func (r *reader) Close() error {
	r.session.Close(func() {
		if r.bus.conn.IsConnected() {
			ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
			defer cancel()
			// Otherwise the server deletes it after readerIdle.
			_ = r.delete(ctx)
		}
		r.abandon()
		r.bus.life.Forget(r)
	})
	return nil
}
