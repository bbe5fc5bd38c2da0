package natsbus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
	"codea1/events/internal/client"
)

// Publish implements events.Bus. It sends up to publishWindow messages before
// their confirmation, but never two of one group: if the connection is lost
// between them, the second could be stored before the retry of the first.
//
// If another event of the same type and group is stored, it returns ErrLineage,
// or a *ForeignEventError after it has stored the other messages.
func (b *Bus) Publish(ctx context.Context, messages ...events.Message) error {
	if err := client.Ended(ctx, b.ctx); err != nil {
		return err
	}
	if err := client.ValidateBatch(messages); err != nil {
		return fmt.Errorf("nats: publish %w", err)
	}
	p := publication{bus: b, groups: make(map[string]bool, min(len(messages), publishWindow))}
	defer p.release()
	err := p.publish(ctx, messages)
	p.full.End(err == nil)
	p.silent.End(err == nil)
	return err
}

// publication is one call of Publish: its unconfirmed messages, oldest first.
type publication struct {
	bus    *Bus
	queue  []sent
	groups map[string]bool // groups of the queue

	silent, full client.Wait
	foreign      []error // events.ForeignEventError
}

type sent struct {
	message *events.Message
	future  jetstream.PubAckFuture
	tried   time.Time // time of the last try
}

func (p *publication) publish(ctx context.Context, messages []events.Message) error {
	for i := range messages {
		if err := p.send(ctx, &messages[i]); err != nil {
			return err
		}
	}
	for len(p.queue) > 0 {
		if err := p.settleOldest(ctx); err != nil {
			return err
		}
	}
	if len(p.foreign) > 0 {
		return fmt.Errorf("nats: publish %w", errors.Join(p.foreign...))
	}
	return nil
}

func groupKey(m *events.Message) string { return m.Run + "." + m.Group }

func (p *publication) send(ctx context.Context, m *events.Message) error {
	if _, err := p.bus.stream(ctx, m.Run); err != nil {
		return err
	}
	for p.groups[groupKey(m)] || len(p.queue) >= publishWindow {
		if err := p.settleOldest(ctx); err != nil {
			return err
		}
	}
	// Do not wait for room while holding some: all publications could do so for
	// ever.
	for !p.bus.window.TryAcquire(weight(m)) {
		if len(p.queue) == 0 {
			if err := p.bus.window.Acquire(ctx, weight(m)); err != nil {
				return err
			}
			break
		}
		if err := p.settleOldest(ctx); err != nil {
			return err
		}
	}
	s := sent{message: m}
	if err := p.try(ctx, &s, nil); err != nil {
		p.bus.window.Release(weight(m))
		return err
	}
	p.queue = append(p.queue, s)
	p.groups[groupKey(m)] = true
	return nil
}

func (b *Bus) publishAsync(m *events.Message) (jetstream.PubAckFuture, error) {
	return b.js.PublishMsgAsync(toNATS(m),
		// It deduplicates, and not the ID of the message: the server would drop an
		// event if another client has used its ID on any subject.
		jetstream.WithExpectLastSequencePerSubject(0),
		// A retry of the client library would send this message after later
		// ones.
		jetstream.WithRetryAttempts(0))
}

// settleOldest waits for the confirmation of the oldest message.
func (p *publication) settleOldest(ctx context.Context) error {
	s := &p.queue[0]
	for {
		select {
		case <-s.future.Ok():
			p.drop()
			return nil
		case err := <-s.future.Err():
			if isTaken(err) {
				m := s.message
				p.drop()
				err := p.bus.settleTaken(ctx, m)
				if errors.Is(err, events.ErrForeignEvent) {
					p.foreign = append(p.foreign, err)
					return nil
				}
				if err != nil {
					return p.fail(m, err)
				}
				return nil
			}
			if err := p.try(ctx, s, err); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-p.bus.ctx.Done():
			return events.ErrClosed
		}
	}
}

// try sends a message, after the error of the last try if it is not nil. It
// repeats a message that was refused for the moment or may be lost: the stream
// stores it once, and no other message of its group is under way.
func (p *publication) try(ctx context.Context, s *sent, err error) error {
	for {
		if err != nil {
			if err := p.await(ctx, s, err); err != nil {
				return p.fail(s.message, err)
			}
		}
		s.tried = time.Now()
		if s.future, err = p.bus.publishAsync(s.message); err == nil {
			return nil
		}
	}
}

// await waits until a message may be sent again after an error, or returns an
// error.
func (p *publication) await(ctx context.Context, s *sent, err error) error {
	b, stream := p.bus, slog.String("stream", streamName(s.message.Run))
	pause := retryPause
	switch {
	case isUnstored(err):
		pause = fullPause
		b.full.Failed(&p.full, 0, orFull(err), stream)
	case !b.isPassing(err):
		return err
	default:
		if denied := b.deniedSince(s.tried, strconv.Quote(subjectOf(s.message))); denied != nil {
			return denied
		}
		if b.conn.IsConnected() { // otherwise link logs the outage
			b.leave(b.silence.Failed(&p.silent, saySilence, err, stream))
		}
	}
	if err := client.Pause(ctx, b.ctx, pause); err != nil {
		return err
	}
	_, err = b.link.wait(ctx, b.ctx)
	return err
}

func (p *publication) drop() {
	m := p.queue[0].message
	p.queue = p.queue[1:]
	delete(p.groups, groupKey(m))
	p.bus.window.Release(weight(m))
}

// release gives back the window of the messages that are unconfirmed after a
// failure.
func (p *publication) release() {
	for len(p.queue) > 0 {
		p.drop()
	}
}

func (p *publication) fail(m *events.Message, err error) error {
	return fmt.Errorf("nats: publish %s %s: %w", m.Type, m.Group, p.bus.orClosed(orFull(err)))
}

func weight(m *events.Message) int64 { return int64(len(m.Data)) + 1 }

// isTaken reports whether the server refused a message because its subject has
// one.
func isTaken(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// isUnstored reports whether the server has refused to store a message that it
// may store later: the stream or the server is full, or its disk fails.
func isUnstored(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == errCodeInsufficientResources ||
		api.ErrorCode == errCodeInsufficientStorage || api.ErrorCode == errCodeStoreFailed)
}

// orFull returns ErrFull for such a refusal.
func orFull(err error) error {
	if !isUnstored(err) {
		return err
	}
	return fmt.Errorf("%w: %w; raise the limit of the stream (--bus-stream-mib) or its server's storage", events.ErrFull, err)
}

// Error codes without a name in the client library.
const (
	errCodeNoPeers               jetstream.ErrorCode = 10005 // JSClusterNoPeersErrF: the description has the reason
	errCodeInsufficientResources jetstream.ErrorCode = 10023 // JSInsufficientResourcesErr
	errCodeInsufficientStorage   jetstream.ErrorCode = 10047 // JSStorageResourcesExceededErr
	errCodeStoreFailed           jetstream.ErrorCode = 10077 // JSStreamStoreFailedF: the description has the reason
)
