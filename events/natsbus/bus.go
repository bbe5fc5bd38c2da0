package natsbus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"

	"codea1/events"
	"codea1/events/internal/client"
)

// Bus is the events.Broker over NATS JetStream.
type Bus struct {
	config Config
	logger *slog.Logger
	conn   *nats.Conn
	js     jetstream.JetStream
	link   *link
	window *semaphore.Weighted // bytes of unconfirmed payloads

	life *client.Life    // the open consumers, readers and leases
	ctx  context.Context // ends with Close

	mu      sync.Mutex
	streams map[string]jetstream.Stream // by run
}

var _ events.Broker = (*Bus)(nil)

const (
	// publishWindow bounds the unconfirmed messages of one Publish. With more
	// than 256 the measured rate rises by less than a fifth.
	publishWindow = 256
	// publishWindowBytes bounds the payloads of all unconfirmed messages.
	publishWindowBytes = 64 << 20
	// publishTimeout bounds the wait for one confirmation, because a node of a
	// cluster may die with it. requestTimeout bounds the wait for an answer of
	// the JetStream API, because a cluster without a leader does not answer.
	// Both are repeated until silenceTimeout has passed since the first try.
	publishTimeout = 5 * time.Second
	requestTimeout = 2 * time.Second
	silenceTimeout = 30 * time.Second
	// closeTimeout bounds the wait of Close for buffered acknowledgements to
	// reach the server.
	closeTimeout = 2 * time.Second
	// retryPause is the wait between two tries while the server does not serve.
	retryPause = 100 * time.Millisecond
)

// Connect connects to a server within config.ConnectTimeout. It refuses a
// server whose max_payload is too small for the largest event: 16MB is enough.
// Afterwards the bus reconnects for ever: Publish fails during an outage, Fetch
// and Next wait until it ends.
func Connect(ctx context.Context, config Config) (*Bus, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	opts, err := config.options()
	if err != nil {
		return nil, err
	}
	b := &Bus{
		config:  config,
		logger:  config.Logger,
		link:    newLink(config.Logger),
		window:  semaphore.NewWeighted(publishWindowBytes),
		streams: make(map[string]jetstream.Stream),
	}
	opts = append(opts,
		nats.DisconnectErrHandler(func(c *nats.Conn, err error) { b.link.disconnected(c.ConnectedUrlRedacted(), err) }),
		nats.ReconnectHandler(func(c *nats.Conn) { b.link.reconnected(c.ConnectedUrlRedacted()) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if b.link.alive().Err() == nil { // during an outage it is one more failed try
				b.logger.Warn("nats: asynchronous error", "error", err)
			}
		}),
	)
	if b.conn, err = dial(ctx, config, opts); err != nil {
		return nil, err
	}
	if has := b.conn.MaxPayload(); has < maxMessageBytes {
		b.link.close()
		b.conn.Close()
		return nil, fmt.Errorf("nats: %s accepts messages of up to %d bytes, but an event may have %d: set max_payload to 16MB in its configuration",
			PublicURL(config.URL), has, maxMessageBytes)
	}
	b.js, err = jetstream.New(b.conn, jetstream.WithPublishAsyncTimeout(publishTimeout))
	if err != nil {
		b.conn.Close()
		return nil, fmt.Errorf("nats: %w", err)
	}
	b.life = client.NewLife()
	b.ctx = b.life.Context()
	return b, nil
}

// dial repeats the first connection until it succeeds, is refused for good or
// ConnectTimeout has passed: in a cluster workers may start before the server.
func dial(ctx context.Context, config Config, opts []nats.Option) (*nats.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, config.ConnectTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		conn, err := nats.Connect(config.URL, opts...)
		if err == nil {
			return conn, nil
		}
		if bad := (*url.Error)(nil); errors.As(err, &bad) {
			err = bad.Err // without the address, which may contain a password
		}
		err = fmt.Errorf("nats: cannot connect to %s: %w", PublicURL(config.URL), err)
		if !errors.Is(err, nats.ErrNoServers) && !errors.Is(err, nats.ErrTimeout) {
			return nil, err
		}
		if client.Pause(limited, context.Background(), reconnectDelay(attempt)) != nil {
			return nil, errors.Join(err, ctx.Err())
		}
	}
}

// Close ends all consumers and readers, sends buffered data and closes the
// connection. A second Close does nothing.
func (b *Bus) Close() error {
	first, err := b.life.Close()
	if !first {
		return err
	}
	b.link.close()
	if b.conn.IsConnected() {
		// The buffered data are acknowledgements, which may be lost.
		_ = b.conn.FlushTimeout(closeTimeout)
	}
	b.conn.Close()
	return err
}

// Lag implements events.Bus. It fails for a worker set that nobody has joined.
func (b *Bus) Lag(ctx context.Context, run, name string) (events.Lag, error) {
	if err := client.Ended(ctx, b.ctx); err != nil {
		return events.Lag{}, err
	}
	if err := validNames(run, name); err != nil {
		return events.Lag{}, err
	}
	var info *jetstream.ConsumerInfo
	err := b.ask(ctx, func(ctx context.Context) error {
		consumer, err := b.js.Consumer(ctx, streamName(run), name)
		if err == nil {
			info = consumer.CachedInfo()
		}
		return err
	})
	if err != nil {
		return events.Lag{}, fmt.Errorf("nats: lag of %q in run %q: %w", name, run, err)
	}
	return events.Lag{Pending: int64(info.NumPending), InFlight: int64(info.NumAckPending)}, nil
}

// errNoAnswer is returned for a request to the JetStream API without an answer:
// the connection was lost, or silenceTimeout has passed.
var errNoAnswer = errors.New("no answer from the server")

// ask sends a request to the JetStream API with do. It repeats do while there
// is no answer; the server may have executed a request without an answer. It
// returns when the connection is lost, because an answer that is lost with it
// never comes.
func (b *Bus) ask(ctx context.Context, do func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, silenceTimeout)
	defer cancel()
	stop := context.AfterFunc(b.link.alive(), cancel)
	defer stop()
	for began := time.Now(); ; {
		err := b.askOnce(limited, do)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !errors.Is(err, errNoAnswer) && !isPassing(err) || client.Pause(limited, b.ctx, retryPause) != nil {
			return b.orClosed(err)
		}
		if errors.Is(err, nats.ErrNoResponders) && time.Since(began) > requestTimeout && b.lacksJetStream(limited) {
			return fmt.Errorf("%s has no JetStream, which stores the events; start it with nats-server -js: %w", b.conn.ConnectedUrlRedacted(), err)
		}
	}
}

// lacksJetStream reports whether no server answers the JetStream API.
func (b *Bus) lacksJetStream(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := b.js.AccountInfo(limited)
	return errors.Is(err, jetstream.ErrJetStreamNotEnabled)
}

func (b *Bus) askOnce(ctx context.Context, do func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := do(limited)
	if err != nil && limited.Err() != nil {
		return fmt.Errorf("%w: %w", errNoAnswer, nats.ErrTimeout)
	}
	return err
}

// isPassing reports whether an error is temporary: a stream of a cluster has no
// leader for a moment, a new stream is not known on all nodes yet, or another
// publisher's copy of the same message may still fail.
func isPassing(err error) bool {
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) {
		return true
	}
	var api *jetstream.APIError
	return errors.As(err, &api) && slices.Contains(passing, api.ErrorCode)
}

// passing are error codes without a name in the client library.
var passing = []jetstream.ErrorCode{
	10008, // JSClusterNotAvailErr
	10009, // JSClusterNotLeaderErr
	10158, // JSStreamDuplicateMessageConflict
	10163, // JSStreamExpectedLastSeqPerSubjectNotReady
}

// orClosed replaces the connection's error by ErrClosed if the bus is closed.
func (b *Bus) orClosed(err error) error {
	if errors.Is(err, nats.ErrConnectionClosed) || b.ctx.Err() != nil {
		return events.ErrClosed
	}
	return err
}
