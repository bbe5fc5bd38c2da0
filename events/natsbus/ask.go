package natsbus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"codea1/events/internal/client"
)

// ask sends a request to the JetStream API with do, and repeats it until the
// server has answered, also across outages. The server may have executed a
// request without an answer.
func (b *Bus) ask(ctx context.Context, do func(context.Context) error) error {
	var wait client.Wait
	for {
		if _, err := b.link.wait(ctx, b.ctx); err != nil {
			wait.End(false)
			return err
		}
		began := time.Now()
		err := b.askOnce(ctx, do)
		switch {
		case !errors.Is(err, client.ErrOutage):
			b.served.Store(true)
			wait.End(true)
			return err
		case client.Ended(ctx, b.ctx) != nil:
			wait.End(false)
			return client.Ended(ctx, b.ctx)
		}
		if final := b.refused(ctx, began, err); final != nil {
			wait.End(false)
			return final
		}
		if b.conn.IsConnected() { // otherwise link logs the outage
			b.leave(b.silence.Failed(&wait, saySilence, err))
		}
		// The next call of link.wait or askOnce notices the end of a context.
		_ = client.Pause(ctx, b.ctx, retryPause)
	}
}

// leave connects to another server after a call has waited for this one too long:
// in a cluster, it may be cut off from the servers that still execute requests.
func (b *Bus) leave(waited time.Duration) {
	if waited < leaveAfter || len(b.conn.Servers()) < 2 {
		return
	}
	b.mu.Lock()
	due := time.Since(b.left) > leaveAfter
	if due {
		b.left = time.Now()
	}
	b.mu.Unlock()
	if due {
		_ = b.conn.ForceReconnect() // it fails if the bus is closed
	}
}

// askSoon is ask for callers that must know about an outage. It returns
// client.ErrOutage when the connection is lost, or when silenceTimeout has
// passed.
func (b *Bus) askSoon(ctx context.Context, do func(context.Context) error) error {
	limited, cancel := client.Both(ctx, b.link.alive())
	defer cancel()
	for began := time.Now(); ; {
		err := b.askOnce(limited, do)
		if !errors.Is(err, client.ErrOutage) {
			return err
		}
		if ended := client.Ended(ctx, b.ctx); ended != nil {
			return ended
		}
		if final := b.refused(limited, began, err); final != nil {
			return final
		}
		if time.Since(began) > silenceTimeout || client.Pause(limited, b.ctx, retryPause) != nil {
			return err
		}
	}
}

// askOnce calls do. Its error is client.ErrOutage if another try may succeed.
func (b *Bus) askOnce(ctx context.Context, do func(context.Context) error) error {
	both, release := client.Both(ctx, b.ctx)
	defer release()
	alive, stop := client.Both(both, b.link.alive()) // an answer that is lost with the connection never comes
	defer stop()
	limited, cancel := context.WithTimeout(alive, requestTimeout)
	defer cancel()
	err := do(limited)
	if err != nil && (limited.Err() != nil || b.isPassing(err)) {
		return fmt.Errorf("%w: %w", client.ErrOutage, err)
	}
	return b.orClosed(err)
}

// refused returns the error of a request without an answer that never gets one:
// the login is not permitted to send it, or no server has JetStream.
func (b *Bus) refused(ctx context.Context, began time.Time, err error) error {
	if denied := b.deniedSince(began, `"`+strings.TrimSuffix(b.config.APIPrefix, ".")+"."); denied != nil {
		return denied
	}
	if !b.served.Load() && errors.Is(err, nats.ErrNoResponders) && b.lacksJetStream(ctx) {
		return fmt.Errorf("nats: %s has no JetStream, which stores the events; start it with nats-server -js: %w", b.conn.ConnectedUrlRedacted(), err)
	}
	return nil
}

// lacksJetStream reports whether no server answers the JetStream API.
func (b *Bus) lacksJetStream(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := b.js.AccountInfo(limited)
	return errors.Is(err, jetstream.ErrJetStreamNotEnabled)
}

// denial is a refusal of the server because of the permissions of the login. It
// names a subject, and comes in place of an answer.
type denial struct {
	err error
	at  time.Time
}

// deniedSince returns the last refusal if it names the subject and came after a
// time.
func (b *Bus) deniedSince(began time.Time, subject string) error {
	d := b.denied.Load()
	if d == nil || d.at.Before(began) || !strings.Contains(d.err.Error(), subject) {
		return nil
	}
	return fmt.Errorf("%w: permit the subject to this login in the server's configuration", d.err)
}

// asynchronous handles an error that belongs to no call.
func (b *Bus) asynchronous(err error) {
	if errors.Is(err, nats.ErrPermissionViolation) {
		if last := b.denied.Swap(&denial{err, time.Now()}); last != nil && last.err.Error() == err.Error() {
			return
		}
	}
	// link logs the loss of the connection; during an outage an error is one more
	// failed try.
	if b.link.alive().Err() == nil && !isUnreachable(err) {
		b.logger.Warn("nats: asynchronous error", "error", err)
	}
}

// isPassing reports whether an error is temporary: the connection is lost, a
// stream of a cluster has no leader for a moment, a new stream is not known on
// all nodes yet, or another publisher's copy of the same message may still fail.
func (b *Bus) isPassing(err error) bool {
	for _, passing := range []error{
		nats.ErrNoResponders, jetstream.ErrNoStreamResponse, jetstream.ErrAsyncPublishTimeout, nats.ErrTimeout,
		nats.ErrDisconnected, nats.ErrReconnectBufExceeded, nats.ErrStaleConnection, nats.ErrConnectionReconnecting,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	// A large message is written while it is published, so a reset of the
	// connection comes as the error of the write.
	if network := (*net.OpError)(nil); errors.As(err, &network) {
		return true
	}
	var api *jetstream.APIError
	return errors.As(err, &api) && (slices.Contains(passing, api.ErrorCode) || api.ErrorCode == jetstream.JSErrCodeJetStreamNotEnabled && b.served.Load())
}

// passing are error codes without a name in the client library.
var passing = []jetstream.ErrorCode{
	10008, // JSClusterNotAvailErr
	10009, // JSClusterNotLeaderErr
	10158, // JSStreamDuplicateMessageConflict
	10163, // JSStreamExpectedLastSeqPerSubjectNotReady
}
