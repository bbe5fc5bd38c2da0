package stage

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"codea1/events"

	"github.com/prometheus/client_golang/prometheus"
)

// Config describes one instance of a stage. All instances of a stage share
// everything but Instance, Logger, Registerer and Now.
type Config struct {
	Bus      events.Bus
	Run      string        // the run whose events are consumed
	Name     string        // the stage, for example "execution": the name of the consumers
	Instance string        // tells instances of a stage apart; "0" by default
	Types    []events.Type // event types consumed
	Handler  Handler
	// TextsOnly says that the handler looks at no token ids and log-probs: it
	// gets events as Message.DecodeTexts returns them.
	TextsOnly bool

	Concurrency int           // batches handled at the same time; 1 by default
	Batch       int           // events handed to one call of Handler, at most; 1 by default
	Linger      time.Duration // how long a batch waits to fill up once it has one event; 0 by default

	// AckWait is how long the bus waits before it gives an event to another
	// instance. The stage extends it while it works, so it only has to outlast
	// a pause of the process, not the handler. 30 s by default.
	AckWait time.Duration
	// MaxInFlight bounds the events that all instances together have not
	// answered, snoozed ones included. 1024 by default, or four times what this
	// instance handles at once if that is more.
	MaxInFlight int

	// MaxTries is how often this instance lets an event fail before it makes
	// a dead letter of it and drops the group; 5 by default. It counts failures
	// it has seen itself, not deliveries: a snooze, a crash of the process, a
	// lost acknowledgement or an outage of the bus deliver an event again
	// without anything being wrong with it.
	MaxTries int
	// HoldDeadLetters is how long the group of a dead letter is kept from being
	// dropped, so that it can be tried again with a better build and still be
	// part of its step, which waits for it. 0, the default, drops it at once.
	// All instances of a stage use the same value, and the bus must be an
	// events.DeadLetters.
	HoldDeadLetters time.Duration
	// Backoff is the wait after a failure, and between two attempts to publish.
	Backoff Backoff
	// HandleTimeout bounds one call of Handler; 10 min by default.
	HandleTimeout time.Duration
	// DrainTimeout is how long Run lets work in flight finish after its
	// context has ended; 30 s by default.
	DrainTimeout time.Duration
	// HeartbeatEvery is the interval of stage.heartbeat events; 0 for none.
	HeartbeatEvery time.Duration
	// LagEvery is how often this instance asks the bus for the stage's lag, one
	// request at a time. 5 s by default, or HeartbeatEvery if that is less:
	// heartbeats tell the lag too. Health goes by it.
	LagEvery time.Duration

	Logger     *slog.Logger          // none by default
	Registerer prometheus.Registerer // where metrics are registered; nowhere by default
	Now        func() time.Time      // time of published events; time.Now by default
}

const (
	defaultAckWait       = 30 * time.Second
	defaultMaxInFlight   = 1024
	defaultMaxTries      = 5
	defaultHandleTimeout = 10 * time.Minute
	defaultDrainTimeout  = 30 * time.Second
	defaultLagEvery      = 5 * time.Second

	maxConcurrency = 1024
	maxBatch       = 1024
	// extendsPerAckWait is how often AckWait is restarted while it runs: two
	// may be lost.
	extendsPerAckWait = 3
)

func (c Config) withDefaults() Config {
	if c.Instance == "" {
		c.Instance = "0"
	}
	if c.Concurrency == 0 {
		c.Concurrency = 1
	}
	if c.Batch == 0 {
		c.Batch = 1
	}
	if c.AckWait == 0 {
		c.AckWait = defaultAckWait
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = max(defaultMaxInFlight, 4*c.Concurrency*c.Batch)
	}
	if c.MaxTries == 0 {
		c.MaxTries = defaultMaxTries
	}
	if c.Backoff == (Backoff{}) {
		c.Backoff = defaultBackoff
	}
	if c.HandleTimeout == 0 {
		c.HandleTimeout = defaultHandleTimeout
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = defaultDrainTimeout
	}
	if c.LagEvery == 0 {
		c.LagEvery = defaultLagEvery
		if c.HeartbeatEvery > 0 {
			c.LagEvery = min(c.LagEvery, c.HeartbeatEvery)
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) validate() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("stage %s: %w", c.Name, fmt.Errorf(format, args...))
	}
	if c.Bus == nil || c.Handler == nil {
		return fail("needs a bus and a handler")
	}
	for _, name := range []string{c.Run, c.Name, c.Instance} {
		if err := events.ValidName(name); err != nil {
			return fail("run, name or instance: %w", err)
		}
	}
	if n := len(c.source()); n > events.MaxTokenBytes/2 {
		return fail("name and instance have %d bytes, limit %d", n, events.MaxTokenBytes/2)
	}
	if len(c.Types) == 0 {
		return fail("consumes no event types")
	}
	for _, t := range c.Types {
		if events.CurrentVersion(t) == 0 {
			return fail("%w: %q", events.ErrUnknownType, t)
		}
	}
	if c.Concurrency < 1 || c.Concurrency > maxConcurrency {
		return fail("concurrency %d is outside 1 to %d", c.Concurrency, maxConcurrency)
	}
	if c.Batch < 1 || c.Batch > maxBatch {
		return fail("batch %d is outside 1 to %d", c.Batch, maxBatch)
	}
	if c.MaxInFlight < 1 || c.MaxTries < 1 {
		return fail("max in flight %d and max attempts %d must be positive", c.MaxInFlight, c.MaxTries)
	}
	for _, d := range []time.Duration{c.AckWait, c.HandleTimeout, c.DrainTimeout, c.LagEvery} {
		if d <= 0 {
			return fail("ack wait, handle timeout, drain timeout and lag interval must be positive")
		}
	}
	if c.Linger < 0 || c.HeartbeatEvery < 0 || c.HoldDeadLetters < 0 {
		return fail("linger, heartbeat interval and hold of dead letters must not be negative")
	}
	if _, ok := c.Bus.(events.DeadLetters); c.HoldDeadLetters > 0 && !ok {
		return fail("dead letters can only be held on a bus that keeps them")
	}
	if err := c.Backoff.validate(); err != nil {
		return fail("%w", err)
	}
	return nil
}

func (c Config) source() string { return c.Name + "-" + c.Instance }

// Backoff says how long to wait after the n-th failure: Initial, doubled each
// time up to Max, shortened by up to Jitter of it.
type Backoff struct {
	Initial time.Duration
	Max     time.Duration
	Jitter  float64 // 0 to 1
}

var defaultBackoff = Backoff{Initial: 200 * time.Millisecond, Max: 30 * time.Second, Jitter: 0.2}

func (b Backoff) validate() error {
	if b.Initial <= 0 || b.Max < b.Initial || b.Jitter < 0 || b.Jitter > 1 {
		return errors.New("backoff wants 0 < initial <= max and jitter from 0 to 1")
	}
	return nil
}
