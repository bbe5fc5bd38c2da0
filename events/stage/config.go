package stage

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"codea1/events"
)

// Config describes one replica of a stage. All replicas of a stage have the
// same values, except Instance, Logger, Registerer and Now.
type Config struct {
	Bus      events.Bus
	Run      string        // the run whose events are consumed
	Name     string        // name of the stage and of its worker set, for example events.StageExecution
	Instance string        // name of the replica; default "0"
	Types    []events.Type // event types consumed
	Handler  Handler
	// TextsOnly is for handlers that read no token ids and log-probs: events
	// are decoded with Message.DecodeTexts.
	TextsOnly bool

	Concurrency int           // batches handled at the same time; default 1
	Batch       int           // limit of the events in one call of Handler; default 1
	Linger      time.Duration // wait for more events after the first one of a batch; default 0

	// AckWait is the time after which the bus delivers an unanswered event to
	// another replica. The stage extends it while it works, so it must be
	// longer than a pause of the process, not than a call of the handler.
	// Default 30 s.
	AckWait time.Duration
	// MaxInFlight bounds the unanswered events of all replicas together,
	// including snoozed ones. Default 1024, or four times the events that this
	// replica handles at once if that is more.
	MaxInFlight int

	// MaxTries is the number of failures of an event after which this replica
	// makes it a dead letter and drops its group; default 5. It counts only
	// failures that this replica has seen: after a snooze, a crash, a lost
	// acknowledgement or an outage of the bus, nothing is wrong with the event.
	MaxTries int
	// HoldDeadLetters is the time for which the group of a dead letter is not
	// dropped. A redelivery within it, for example to a newer build, keeps the
	// group in its step, which waits for it. With 0, the default, the group is
	// dropped at once. The bus must be an events.DeadLetters.
	HoldDeadLetters time.Duration
	// KeepGroups makes an event that this stage gives up on a dead letter and nothing
	// else: for a stage that the run does not wait for.
	KeepGroups bool
	// Backoff is the wait after a failure, also of a publish.
	Backoff Backoff
	// HandleTimeout bounds one call of Handler; default 10 min.
	HandleTimeout time.Duration
	// DrainTimeout bounds the time for work in flight after the context of Run
	// has ended; default 30 s.
	DrainTimeout time.Duration
	// HeartbeatEvery is the interval of stage.heartbeat events; 0 for none.
	HeartbeatEvery time.Duration
	// LagEvery is the interval in which this replica asks the bus for the
	// stage's lag, one request at a time. Health and heartbeats use the
	// answers. Default 5 s, or HeartbeatEvery if that is less.
	LagEvery time.Duration

	Logger     *slog.Logger          // default: none
	Registerer prometheus.Registerer // registers the metrics; default: none
	Now        func() time.Time      // time of published events; default time.Now
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
	// extendsPerAckWait is the number of extensions per AckWait: two of them
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
		return fail("max in flight %d and max tries %d must be positive", c.MaxInFlight, c.MaxTries)
	}
	for _, d := range []time.Duration{c.AckWait, c.HandleTimeout, c.DrainTimeout, c.LagEvery} {
		if d <= 0 {
			return fail("ack wait, handle timeout, drain timeout and lag interval must be positive")
		}
	}
	if c.Linger < 0 || c.HeartbeatEvery < 0 || c.HoldDeadLetters < 0 {
		return fail("linger, heartbeat interval and hold time of dead letters must not be negative")
	}
	if _, ok := c.Bus.(events.DeadLetters); c.HoldDeadLetters > 0 && !ok {
		return fail("holding dead letters needs a bus that stores them")
	}
	if err := c.Backoff.validate(); err != nil {
		return fail("%w", err)
	}
	return nil
}

func (c Config) source() string { return c.Name + "-" + c.Instance }

// Backoff is the wait after the n-th failure: Initial, doubled each time up to
// Max, minus a random part of at most Jitter.
type Backoff struct {
	Initial time.Duration
	Max     time.Duration
	Jitter  float64 // 0 to 1
}

var defaultBackoff = Backoff{Initial: 200 * time.Millisecond, Max: 30 * time.Second, Jitter: 0.2}

func (b Backoff) validate() error {
	if b.Initial <= 0 || b.Max < b.Initial || b.Jitter < 0 || b.Jitter > 1 {
		return errors.New("backoff: want 0 < initial <= max and jitter from 0 to 1")
	}
	return nil
}
