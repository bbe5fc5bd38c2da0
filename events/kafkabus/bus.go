package kafkabus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"codea1/events"
	"codea1/events/internal/client"
)

// Bus is the events.Broker over Apache Kafka.
type Bus struct {
	config    Config
	logger    *slog.Logger
	transport *kafka.Transport
	dialer    *dialer
	client    *kafka.Client

	life *client.Life    // the open consumers, readers and leases
	ctx  context.Context // ends with Close

	mu         sync.Mutex
	partitions map[events.Type]int       // number for each payload topic
	controls   map[string]*control       // by run
	leases     map[string]*leaseFollower // by run
}

var _ events.Broker = (*Bus)(nil)

const (
	// metadataTTL is the longest time for which a new leader or a topic made by
	// another process is unknown.
	metadataTTL = time.Second
	// requestTimeout bounds the wait for one answer of a broker.
	requestTimeout = 30 * time.Second
	// closeTimeout bounds the wait of Close until queued answers are stored and
	// offsets are committed.
	closeTimeout = 2 * time.Second
	// retryPause is the wait between two tries while brokers do not serve.
	retryPause = 100 * time.Millisecond
)

// Connect connects to a cluster within config.ConnectTimeout and creates the
// missing payload topics; without permission to create topics, they must exist.
// Afterwards the bus reconnects for ever: Publish fails during an outage, Fetch
// and Next wait until it ends.
func Connect(ctx context.Context, config Config) (*Bus, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	transport, err := config.transport()
	if err != nil {
		return nil, err
	}
	b := &Bus{
		config:    config,
		logger:    config.Logger,
		transport: transport,
		dialer:    &dialer{open: make(map[*connection]struct{})},
		client:    &kafka.Client{Addr: kafka.TCP(config.Brokers...), Transport: transport},
		controls:  make(map[string]*control),
		leases:    make(map[string]*leaseFollower),
	}
	transport.Dial = b.dialer.dial
	b.life = client.NewLife()
	b.ctx = b.life.Context()
	limited, cancel := context.WithTimeout(ctx, config.ConnectTimeout)
	defer cancel()
	for {
		if b.partitions, err = b.payloadTopics(limited); err == nil {
			return b, nil
		}
		if isFinal(err) || client.Pause(limited, b.ctx, retryPause) != nil {
			_, _ = b.life.Close()
			b.disconnect()
			if ctx.Err() != nil {
				err = errors.Join(err, ctx.Err())
			} else if reason := config.diagnose(ctx, transport); reason != nil && !isFinal(err) {
				err = reason // the transport reports every problem as "no broker available"
			}
			return nil, fmt.Errorf("kafka: cannot use %v: %w", config.Brokers, err)
		}
	}
}

// isFinal reports whether another try fails the same way.
func isFinal(err error) bool {
	for _, final := range []error{
		kafka.SASLAuthenticationFailed, kafka.UnsupportedSASLMechanism, kafka.TopicAuthorizationFailed,
		kafka.ClusterAuthorizationFailed, kafka.InvalidReplicationFactor, kafka.InvalidTopic, kafka.PolicyViolation,
	} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// Close ends all consumers and readers, stores the queued answers, commits
// offsets and closes the connections. A second Close does nothing.
func (b *Bus) Close() error {
	first, err := b.life.Close()
	if !first {
		return err
	}
	b.mu.Lock()
	controls, leases := b.controls, b.leases
	b.controls, b.leases = nil, nil
	b.mu.Unlock()
	var closing sync.WaitGroup
	for _, ctl := range controls {
		closing.Go(ctl.close)
	}
	for _, l := range leases {
		closing.Go(l.close)
	}
	closing.Wait()
	b.disconnect()
	return err
}

func (b *Bus) disconnect() {
	b.transport.CloseIdleConnections()
	b.dialer.close()
}

// Lag implements events.Bus. It fails for a worker set that nobody has joined.
func (b *Bus) Lag(ctx context.Context, run, name string) (events.Lag, error) {
	fail := func(err error) (events.Lag, error) {
		return events.Lag{}, fmt.Errorf("kafka: lag of %q in run %q: %w", name, run, err)
	}
	if err := client.Ended(ctx, b.ctx); err != nil {
		return events.Lag{}, err
	}
	if err := events.ValidName(name); err != nil {
		return fail(err)
	}
	ctl, err := b.control(ctx, run)
	if err != nil {
		return fail(err)
	}
	end, err := b.end(ctx, ctl.topic)
	if err != nil {
		return fail(err)
	}
	if err := ctl.wait(ctx, b.ctx, end); err != nil {
		return fail(err)
	}
	var lag events.Lag
	err = errNoSet
	ctl.look(func(l *ledger) {
		if s := l.sets[name]; s != nil {
			lag, err = s.lag(), nil
		}
	})
	if err != nil {
		return fail(err)
	}
	return lag, nil
}

var errNoSet = errors.New("no member has joined this worker set")
