package kafkabus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"codea1/events"
	"codea1/events/internal/client"

	"github.com/segmentio/kafka-go"
)

// Bus is an events.Broker over Apache Kafka.
type Bus struct {
	config    Config
	logger    *slog.Logger
	transport *kafka.Transport
	dialer    *dialer
	client    *kafka.Client

	life *client.Life    // what is open
	ctx  context.Context // of the life: ends with Close

	mu         sync.Mutex
	partitions map[events.Type]int   // of the payload topics
	journals   map[string]*journal   // by run
	leases     map[string]*leaseBook // by run
}

var _ events.Broker = (*Bus)(nil)

const (
	// metadataTTL is how long a new leader, or a topic made by another process,
	// may stay unknown.
	metadataTTL = time.Second
	// requestTimeout ends the wait for one answer of a broker.
	requestTimeout = 30 * time.Second
	// closeTimeout is how long Close waits for answers to messages to be stored
	// and committed.
	closeTimeout = 2 * time.Second
	// retryPause is the wait between two attempts on brokers that do not serve.
	retryPause = 100 * time.Millisecond
)

// Connect reaches a cluster within config.ConnectTimeout and ctx and creates
// the payload topics it lacks; without permission to, they must be there.
// Afterwards the bus reconnects by itself, for ever: Publish fails during an
// outage, Fetch and Next wait it out.
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
		journals:  make(map[string]*journal),
		leases:    make(map[string]*leaseBook),
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
				err = reason // the transport says of all that keeps it from a broker that there is none
			}
			return nil, fmt.Errorf("kafka: cannot use %v: %w", config.Brokers, err)
		}
	}
}

// isFinal reports whether another attempt will fail the same way.
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

// Close ends all consumers and readers, stores the answers given so far, commits
// what they finish and releases the connections. A second Close does nothing.
func (b *Bus) Close() error {
	first, err := b.life.Close()
	if !first {
		return err
	}
	b.mu.Lock()
	journals, leases := b.journals, b.leases
	b.journals, b.leases = nil, nil
	b.mu.Unlock()
	var closing sync.WaitGroup
	for _, j := range journals {
		closing.Go(j.close)
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

// Lag implements events.Bus. It fails for a name that nobody has consumed
// under yet.
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
	j, err := b.journal(ctx, run)
	if err != nil {
		return fail(err)
	}
	end, err := b.end(ctx, j.topic)
	if err != nil {
		return fail(err)
	}
	if err := j.wait(ctx, b.ctx, end); err != nil {
		return fail(err)
	}
	var lag events.Lag
	err = errNoSet
	j.look(func(l *ledger) {
		if s := l.sets[name]; s != nil {
			lag, err = s.lag(), nil
		}
	})
	if err != nil {
		return fail(err)
	}
	return lag, nil
}

var errNoSet = errors.New("nobody has consumed under this name")
