package stage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/natsbus"
	"codea1/events/natsbus/natstest"
	"codea1/events/stage"
)

// The server restarts several times while two replicas handle events. Every
// event is answered, and no output is stored twice.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	const n, restarts = 120, 3
	c := config(nil, stage.Each(answer))
	registry := prometheus.NewRegistry()
	c.AckWait, c.Concurrency, c.Batch, c.MaxTries, c.Registerer = 2*time.Second, 2, 3, 1, registry
	for i := range 2 {
		c.Bus, c.Instance = server.Connect(t, natsbus.Config{}), fmt.Sprint(i)
		start(t, c)
	}
	bus := server.Connect(t, natsbus.Config{})
	ctx := bounded(t)
	var poster sync.WaitGroup
	poster.Go(func() {
		for slot := range n {
			m := eventstest.Encode(eventstest.Posed(run, 1, slot))
			for bus.Publish(ctx, m) != nil && ctx.Err() == nil {
				time.Sleep(5 * time.Millisecond)
			}
			time.Sleep(2 * time.Millisecond)
		}
	})
	for range restarts {
		time.Sleep(60 * time.Millisecond)
		server.Restart()
	}
	poster.Wait()
	list := collect(t, bus, n, events.TypeCodeSampled)
	settled(t, bus)
	names := groups(list)
	if unique := slices.Compact(slices.Clone(names)); len(unique) != n {
		t.Errorf("%d events in %d groups", len(names), len(unique))
	}
	if lag, err := bus.Lag(ctx, run, "worker"); err != nil || lag != (events.Lag{}) {
		t.Errorf("lag %+v, error %v", lag, err)
	}
	// An outage is not a failure of an event.
	if list, err := bus.DeadLetters(ctx, run); err != nil || len(list) > 0 {
		t.Errorf("dead letters %v, error %v", list, err)
	}
	if metrics := gather(t, registry); metrics["codea1_stage_failed_total worker"] != 0 || metrics["codea1_stage_handled_total passed worker"] < n {
		t.Errorf("metrics: %v", metrics)
	}
}

// If the consumer is deleted on the server, the stage makes another one.
func TestConsumerDeleted(t *testing.T) {
	server := natstest.Start(t)
	bus := server.Connect(t, natsbus.Config{})
	start(t, config(bus, stage.Each(answer)))
	post(t, bus, 1)
	collect(t, bus, 1, events.TypeCodeSampled)
	settled(t, bus)
	conn, err := nats.Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteConsumer(bounded(t), "codea1-"+run, "worker"); err != nil {
		t.Fatal(err)
	}
	post(t, bus, 3) // and handles the first again, which publishes nothing new
	if got := collect(t, bus, 3, events.TypeCodeSampled); len(slices.Compact(groups(got))) != 3 {
		t.Errorf("answered %q", groups(got))
	}
	settled(t, bus)
}

func TestBusClosed(t *testing.T) {
	server := natstest.Start(t)
	bus := server.Connect(t, natsbus.Config{})
	c := config(bus, stage.Each(answer))
	c.HeartbeatEvery = time.Hour
	s, err := stage.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context()) }()
	post(t, bus, 1)
	collect(t, bus, 1, events.TypeCodeSampled)
	if err := bus.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, events.ErrClosed) {
		t.Errorf("Run: %v, want ErrClosed", err)
	}
}

// An event that takes several AckWaits is handled once. The test allows for a
// machine that stops this process.
func TestLongWorkIsNotDeliveredAgain(t *testing.T) {
	t.Parallel()
	const ackWait = time.Second
	bus := natstest.Bus(t)
	var calls atomic.Int64
	var longestPause time.Duration
	c := config(bus, stage.Each(func(ctx context.Context, e *events.Event) ([]*events.Event, error) {
		if calls.Add(1) == 1 {
			for began, last := time.Now(), time.Now(); time.Since(began) < 5*ackWait/2; last = time.Now() {
				time.Sleep(ackWait / 100)
				longestPause = max(longestPause, time.Since(last))
			}
		}
		return answer(ctx, e)
	}))
	c.AckWait, c.Concurrency = ackWait, 2
	stop := start(t, c)
	post(t, bus, 1)
	collect(t, bus, 1, events.TypeCodeSampled)
	settled(t, bus)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if n := calls.Load(); n > 1 && longestPause < ackWait/2 {
		t.Errorf("handled %d times", n)
	}
}
