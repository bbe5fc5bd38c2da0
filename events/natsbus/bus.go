package natsbus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
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

	silence *client.Outages // the server is connected and does not execute requests
	full    *client.Outages // the server has no room
	served  atomic.Bool     // the JetStream API has answered
	denied  atomic.Pointer[denial]

	life *client.Life    // the open consumers, readers and leases
	ctx  context.Context // ends with Close

	mu      sync.Mutex
	streams map[string]jetstream.Stream // by run
	left    time.Time                   // when leave was last done
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
	// Both are repeated. A call that may not wait for the end of an outage gives
	// up after silenceTimeout.
	publishTimeout = 5 * time.Second
	requestTimeout = 2 * time.Second
	silenceTimeout = 30 * time.Second
	// saySilence is the time after which a connected server that executes no
	// requests is logged.
	saySilence = 2 * time.Second
	// leaveAfter is the time after which a client leaves such a server for another
	// one. The election of a leader takes 4 to 9 seconds.
	leaveAfter = 10 * time.Second
	// closeTimeout bounds the wait of Close for buffered acknowledgements to
	// reach the server.
	closeTimeout = 2 * time.Second
	// retryPause is the wait between two tries while the server does not serve.
	retryPause = 100 * time.Millisecond
	// fullPause is the wait between two tries while the server has no room.
	fullPause = 500 * time.Millisecond
)

// Connect connects to a server. It refuses a server with a max_payload that is too
// small for the largest event: 16MB is enough. Afterwards the bus reconnects
// for ever.
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
		silence: &client.Outages{Logger: config.Logger, Lost: "nats: the server executes no requests, trying again", Back: "nats: the server executes requests again"},
		full:    &client.Outages{Logger: config.Logger, Lost: "nats: the server stores no events, trying again", Back: "nats: the server stores events again"},
	}
	opts = append(opts,
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { b.link.disconnected(PublicURL(config.URL), err) }),
		nats.ReconnectHandler(func(c *nats.Conn) { b.link.reconnected(c.ConnectedUrlRedacted()) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { b.asynchronous(err) }),
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
	b.js, err = jetstream.NewWithAPIPrefix(b.conn, config.APIPrefix, jetstream.WithPublishAsyncTimeout(publishTimeout))
	if err != nil {
		b.conn.Close()
		return nil, fmt.Errorf("nats: %w", err)
	}
	b.life = client.NewLife()
	b.ctx = b.life.Context()
	return b, nil
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

// orClosed replaces the connection's error by ErrClosed if the bus is closed.
func (b *Bus) orClosed(err error) error {
	if errors.Is(err, nats.ErrConnectionClosed) || b.ctx.Err() != nil {
		return events.ErrClosed
	}
	return err
}
