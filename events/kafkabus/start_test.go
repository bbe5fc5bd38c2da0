package kafkabus_test

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/kafkabus"
)

// Nothing is logged while the brokers do not know the topics of a new run yet.
func TestFirstStartIsQuiet(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	var refused atomic.Int32
	c.refuseFetch(kerr.UnknownTopicOrPartition, func(string) bool { return refused.Add(1) <= 3 })
	log := bustest.NewLines()
	bus := c.connect(t, kafkabus.Config{Logger: slog.New(log)})
	ctx := bounded(t)
	list := posed(1)
	if err := bus.Publish(ctx, list...); err != nil {
		t.Fatal(err)
	}
	consumer, err := bus.Consume(ctx, events.ConsumeConfig{Run: "r1", Name: "worker", AckWait: time.Minute, MaxInFlight: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := consumer.Fetch(ctx, 1, 0); err != nil {
		t.Fatal(err)
	}
	if refused.Load() <= 3 {
		t.Error("the broker knew the topic at once")
	}
	select {
	case line := <-log.C:
		t.Errorf("logged %q", line)
	default:
	}
}
