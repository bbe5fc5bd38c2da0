package bustest

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"testing"
	"time"

	"codea1/events"
	"codea1/events/eventstest"
)

// Features says what a bus can do in addition to events.Broker, and how to
// cause failures.
type Features struct {
	// Outage stops the service of the bus. back starts it again with its data.
	// Open buses stay open. Without it, the tests that need it are skipped.
	Outage func(t testing.TB) (back func())
	// Join connects to the service and waits for it. It belongs to Outage.
	Join func(ctx context.Context) (events.Broker, error)
	// LoseNode stops the node on which a run depends now, of a service that
	// works without it. back starts it again. Without LoseNode, its test is
	// skipped.
	LoseNode func(t testing.TB, run string) (back func())
	// Address is the address of the service for another process; see Owner.
	Address string
	// RefusesContradiction says that the bus returns ErrLineage for a second
	// event of a type and group.
	RefusesContradiction bool
	// Only names the tests to run; empty for all.
	Only []string
}

// Run checks every promise of events.Broker. newBus returns a new connection to
// the one service under test and closes it when its test ends. Tests use runs
// of their own and take about ten seconds together, mostly waiting in parallel.
func Run(t *testing.T, features Features, newBus func(t testing.TB) events.Broker) {
	s := &suite{features: features, newBus: newBus}
	run := func(name string, test func(*testing.T)) {
		if len(features.Only) == 0 || slices.Contains(features.Only, name) {
			t.Run(name, test)
		}
	}
	// First and not in parallel, because it measures memory.
	run("SlowReaderHoldsLittle", s.slowReaderHoldsLittle)
	t.Run("Together", func(t *testing.T) {
		for _, c := range []struct {
			name string
			test func(*testing.T)
		}{
			{"RoundTrip", s.roundTrip},
			{"LargestPayload", s.largestPayload},
			{"TooLargeStoresNothing", s.tooLargeStoresNothing},
			{"InvalidEnvelope", s.invalidEnvelope},
			{"SameEventOnce", s.sameEventOnce},
			{"SameEventFromManyPublishers", s.sameEventFromManyPublishers},
			{"Contradiction", s.contradiction},
			{"ForeignEvent", s.foreignEvent},
			{"NoEventFirst", s.noEventFirst},
			{"OutOfTurn", s.outOfTurn},
			{"OrderPerGroup", s.orderPerGroup},
			{"PublishAfterContextEnd", s.publishAfterContextEnd},

			{"CompetingConsumers", s.competingConsumers},
			{"OnlyTypesAsked", s.onlyTypesAsked},
			{"NamesAreIndependent", s.namesAreIndependent},
			{"RedeliveryAfterAckWait", s.redeliveryAfterAckWait},
			{"RetryNoSoonerThan", s.retryNoSoonerThan},
			{"AckIsFinal", s.ackIsFinal},
			{"ExtendKeeps", s.extendKeeps},
			{"MaxInFlight", s.maxInFlight},
			{"FetchLingers", s.fetchLingers},
			{"CancelledFetchLosesNothing", s.cancelledFetchLosesNothing},
			{"ConsumerResumes", s.consumerResumes},
			{"Lag", s.lag},

			{"ReadersAgree", s.readersAgree},
			{"ResumeFromEveryPosition", s.resumeFromEveryPosition},
			{"ReadOnlyTypesAsked", s.readOnlyTypesAsked},
			{"BadPosition", s.badPosition},
			{"HasRun", s.hasRun},
			{"NextUnblocks", s.nextUnblocks},
			{"CancelledNextLosesNothing", s.cancelledNextLosesNothing},

			{"DeadLetter", s.deadLetter},
			{"DeadLetterOnceARound", s.deadLetterOnceARound},
			{"Redeliver", s.redeliver},
			{"RedeliverOnce", s.redeliverOnce},
			{"RedeliverIntoEndedGroup", s.redeliverIntoEndedGroup},
			{"NoDeadLetter", s.noDeadLetter},

			{"LeaseRefused", s.leaseRefused},
			{"LeaseAfterClose", s.leaseAfterClose},
			{"LeaseOfClosedBus", s.leaseOfClosedBus},
			{"LeaseWaitEnds", s.leaseWaitEnds},
			{"LeaseOfKilledOwner", s.leaseOfKilledOwner},
			{"LeaseOfStoppedOwner", s.leaseOfStoppedOwner},
			{"BadLease", s.badLease},

			{"CloseEndsEverything", s.closeEndsEverything},
		} {
			if len(features.Only) > 0 && !slices.Contains(features.Only, c.name) {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.test(t)
			})
		}
	})
	if features.LoseNode != nil {
		run("LoseNode", s.loseNode)
	}
	if features.Outage != nil {
		run("Outage", s.outage)
		run("OutageEnds", s.outageEnds)
		run("Restart", s.restart)
		run("RestartKeepsLease", s.restartKeepsLease)
		run("RestartKeepsDeadLetters", s.restartKeepsDeadLetters)
	}
}

type suite struct {
	features Features
	newBus   func(testing.TB) events.Broker
}

// testTimeout ends a test that hangs. No result depends on it. The race detector on a
// busy machine needs more than a minute for the longest of the tests.
const testTimeout = 150 * time.Second

// restartTimeout ends a test that restarts the service several times. A broker
// in Java is slow on a busy machine.
const restartTimeout = 4 * testTimeout

// longAckWait is longer than any test: a redelivery within it is a bug.
const longAckWait = 2 * testTimeout

// start returns a bounded context, a bus and a new run.
func (s *suite) start(t *testing.T) (context.Context, events.Broker, string) {
	t.Helper()
	return s.startFor(t, testTimeout)
}

func (s *suite) startFor(t *testing.T, timeout time.Duration) (context.Context, events.Broker, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return ctx, s.newBus(t), runName(t)
}

// runName differs between tests and between calls of go test, so that the runs
// of a real broker start empty.
func runName(t testing.TB) string {
	h := fnv.New32a()
	h.Write([]byte(t.Name()))
	return fmt.Sprintf("t%08x-%s", h.Sum32(), strconv.FormatInt(time.Now().UnixNano(), 36))
}

func publish(ctx context.Context, t *testing.T, bus events.Bus, list ...events.Message) {
	t.Helper()
	if err := bus.Publish(ctx, list...); err != nil {
		t.Fatalf("publish: %v", err)
	}
}

// posed returns the problem.posed messages of n groups.
func posed(run string, n int) []events.Message {
	list := make([]events.Message, n)
	for i := range list {
		list[i] = eventstest.Encode(eventstest.Posed(run, 1, i))
	}
	return list
}

func read(ctx context.Context, t *testing.T, bus events.Bus, config events.ReadConfig) events.Reader {
	t.Helper()
	r, err := bus.Read(ctx, config)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return r
}

func next(ctx context.Context, t *testing.T, r events.Reader) (events.Message, events.Position) {
	t.Helper()
	m, p, err := r.Next(ctx)
	if err != nil {
		t.Fatalf("next: %v", err)
	}
	return m, p
}

// stored returns the IDs of all events of a run, in order. It publishes a last
// event to find the end.
func stored(ctx context.Context, t *testing.T, bus events.Bus, run string) []string {
	t.Helper()
	end := eventstest.Encode(eventstest.Posed(run, 999999, 0))
	publish(ctx, t, bus, end)
	r := read(ctx, t, bus, events.ReadConfig{Run: run})
	defer r.Close()
	var ids []string
	for {
		m, _ := next(ctx, t, r)
		if m.ID == end.ID {
			return ids
		}
		ids = append(ids, m.ID)
	}
}

func consume(ctx context.Context, t *testing.T, bus events.Bus, config events.ConsumeConfig) events.Consumer {
	t.Helper()
	if config.Name == "" {
		config.Name = "worker"
	}
	if config.Types == nil {
		config.Types = []events.Type{events.TypeProblemPosed}
	}
	if config.AckWait == 0 {
		config.AckWait = longAckWait
	}
	if config.MaxInFlight == 0 {
		config.MaxInFlight = 1000
	}
	c, err := bus.Consume(ctx, config)
	if err != nil {
		t.Fatalf("consume: %v", err)
	}
	return c
}

// fetch returns exactly n deliveries, in several calls if necessary.
func fetch(ctx context.Context, t *testing.T, c events.Consumer, n int) []events.Delivery {
	t.Helper()
	var all []events.Delivery
	for len(all) < n {
		got, err := c.Fetch(ctx, n-len(all), 0)
		if err != nil {
			t.Fatalf("fetch %d of %d: %v", len(all), n, err)
		}
		all = append(all, got...)
	}
	return all
}

// nothing checks that no delivery comes for a while. On a slow machine it may
// miss a violation.
func nothing(ctx context.Context, t *testing.T, c events.Consumer, d time.Duration) {
	t.Helper()
	short, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	got, err := c.Fetch(short, 1, 0)
	if len(got) > 0 {
		t.Fatalf("fetch: %s %s, want nothing", got[0].Message().Type, got[0].Message().Group)
	}
	if err == nil || short.Err() == nil {
		t.Fatalf("fetch: %d deliveries and error %v", len(got), err)
	}
}

// untilLag waits until the lag of the worker set is want.
func untilLag(ctx context.Context, t *testing.T, bus events.Bus, run, name string, want events.Lag) {
	t.Helper()
	var lag events.Lag
	for ctx.Err() == nil {
		var err error
		if lag, err = bus.Lag(ctx, run, name); err == nil && lag == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("lag is %+v, want %+v", lag, want)
}

func idsOf(list []events.Message) []string {
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	return ids
}
