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
	outages   *client.Outages

	life *client.Life    // the open consumers, readers and leases
	ctx  context.Context // ends with Close

	// absence is the time after which a payload that its brokers do not have was
	// never written.
	absence time.Duration

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
	// sayOutage is the time after which requests that fail are logged. A broker
	// that was away leaves dead connections behind, each of which fails once.
	sayOutage = 500 * time.Millisecond
	// forged is longer than a broker shows the end of a partition too late: until
	// its followers have it or count as lost (replica.lag.time.max.ms, 30 s).
	forged = 2 * time.Minute
	// reachPause is the longest wait between two tries to connect.
	reachPause = 2 * time.Second
)

// Connect connects to a cluster and creates the missing payload topics; without
// permission to create topics, they must exist. Afterwards the bus reconnects
// for ever.
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
		absence:   forged,
		outages:   &client.Outages{Logger: config.Logger, Lost: "kafka: the brokers execute no requests, trying again", Back: "kafka: the brokers execute requests again"},
	}
	transport.Dial = b.dialer.dial
	b.life = client.NewLife()
	b.ctx = b.life.Context()
	if err := b.reach(ctx); err != nil {
		_, _ = b.life.Close()
		b.disconnect()
		return nil, fmt.Errorf("kafka: cannot use %v: %w", config.Brokers, err)
	}
	return b, nil
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
