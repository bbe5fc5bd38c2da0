package fork

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"

	"codea1/events"
	"codea1/events/kafkabus"
	"codea1/events/natsbus/natstest"
	"codea1/replay/eventlog"
	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/internal/replaytest"
)

// bothBuses runs a test on a NATS server and on a fake Kafka cluster.
func bothBuses(t *testing.T, test func(t *testing.T, bus SeedBus)) {
	for name, bus := range map[string]func(*testing.T) SeedBus{"nats": func(t *testing.T) SeedBus { return natstest.Bus(t) }, "kafka": kafkaBus} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, bus(t))
		})
	}
}

func kafkaBus(t *testing.T) SeedBus {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	bus, err := kafkabus.Connect(t.Context(), kafkabus.Config{Brokers: cluster.ListenAddrs(), Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bus.Close(); err != nil {
			t.Error(err)
		}
	})
	return bus
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// take returns the IDs of the first n events that a worker set gets.
func take(t *testing.T, bus SeedBus, set events.Stage, n int) map[string]bool {
	t.Helper()
	consumer, err := bus.Consume(t.Context(), events.ConsumeConfig{Run: replaytest.Run, Name: set.Name, Types: set.Consumes, AckWait: 5 * time.Second, MaxInFlight: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	ids := make(map[string]bool)
	for len(ids) < n {
		deliveries, err := consumer.Fetch(within(t), 8, 0)
		if err != nil {
			t.Fatalf("%d of %d deliveries: %v", len(ids), n, err)
		}
		for _, d := range deliveries {
			ids[d.Message().ID] = true
			if err := d.Ack(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return ids
}

// awaitIdle waits until a worker set has no open events: an acknowledgement is stored
// later than Ack returns.
func awaitIdle(t *testing.T, bus SeedBus, set string) {
	t.Helper()
	ctx := within(t)
	for lag := (events.Lag{InFlight: 1}); lag != (events.Lag{}); {
		var err error
		if lag, err = bus.Lag(ctx, replaytest.Run, set); err != nil {
			t.Fatalf("%s: %+v, %v", set, lag, err)
		}
	}
}

// After Seed, a recorder continues where the log ends, a reader continues from a
// mark, and the workers get the open events only.
func TestSeed(t *testing.T) {
	t.Parallel()
	bothBuses(t, func(t *testing.T, bus SeedBus) {
		messages := replaytest.Tell(t)
		cut := 0 // the log ends with the tests.sampled event of a group
		for i := range messages {
			if messages[i].Type == events.TypeTestsSampled {
				cut = i + 1
			}
		}
		log := eventlogtest.Open(t, t.TempDir(), eventlog.Options{})
		eventlogtest.Append(t, log, eventlogtest.At(1, messages[:cut]...))
		const mark = 7
		seeded, err := Seed(within(t), log, bus, []uint64{mark, 0}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if int(seeded.Events) != cut || seeded.Open != 1 || seeded.Positions[0] != events.Start {
			t.Fatalf("%+v", seeded)
		}
		if err := log.Rebase(seeded.End); err != nil || log.Position() != seeded.End {
			t.Fatalf("the log has position %q, %v", log.Position(), err)
		}
		execution, _ := events.ModelsBoth.Stage(events.StageExecution)
		if got := take(t, bus, execution, 1); !got[messages[cut-1].ID] {
			t.Errorf("the workers get %v, want %s", got, messages[cut-1].ID)
		}
		for _, set := range events.ModelsBoth.Workers() {
			awaitIdle(t, bus, set.Name)
		}
		reader, err := bus.Read(within(t), events.ReadConfig{Run: replaytest.Run, From: seeded.Positions[mark]})
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		if m, _, err := reader.Next(within(t)); err != nil || m.ID != messages[mark].ID {
			t.Errorf("after event %d comes %s, want %s: %v", mark, m.ID, messages[mark].ID, err)
		}

		// The run continues, and a second Seed changes nothing.
		if err := bus.Publish(within(t), messages[cut:]...); err != nil {
			t.Fatal(err)
		}
		if _, err := record(t, bus, log, uint64(len(messages)), eventlog.RecorderConfig{Run: replaytest.Run}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(messages, eventlogtest.Messages(t, log, eventlog.ReadOptions{})); diff != "" {
			t.Error(diff)
		}
		again, err := Seed(within(t), log, bus, nil, nil)
		if err != nil || again.Open != 0 || int(again.Events) != len(messages) {
			t.Errorf("seeded again: %+v, %v", again, err)
		}
	})
}

// Seed changes nothing on a bus with other events of the run.
func TestSeedFindsForeignEvents(t *testing.T) {
	t.Parallel()
	bothBuses(t, func(t *testing.T, bus SeedBus) {
		foreign := replaytest.Encode(t, replaytest.Posed(900, "What is g?"))
		if err := bus.Publish(within(t), foreign); err != nil {
			t.Fatal(err)
		}
		_, log := eventlogtest.Run(t, replaytest.Tell(t))
		was := log.Position()
		var other *ForeignEventError
		if _, err := Seed(within(t), log, bus, nil, nil); !errors.As(err, &other) || other.Seq != 1 || other.Have != foreign.ID {
			t.Errorf("%v", err)
		}
		if log.Position() != was {
			t.Error("the position of the log has changed")
		}
	})
}
