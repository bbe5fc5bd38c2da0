package stage_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/natsbus/natstest"
	"codea1/events/stage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const run = "r1"

// config returns a stage that answers problem.posed, with short waits.
func config(bus events.Bus, handler stage.Handler) stage.Config {
	return stage.Config{
		Bus: bus, Run: run, Name: "worker",
		Types:   []events.Type{events.TypeProblemPosed},
		Handler: handler,
		Backoff: stage.Backoff{Initial: time.Millisecond, Max: 50 * time.Millisecond},
	}
}

func answer(_ context.Context, e *events.Event) ([]*events.Event, error) {
	return []*events.Event{eventstest.CodeSampled(e)}, nil
}

// start runs a stage until stop is called or the test ends. It returns once the
// stage consumes or has failed. stop returns the error of Run.
func start(t *testing.T, c stage.Config) (stop func() error) {
	t.Helper()
	s, err := stage.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	ended := make(chan struct{})
	running.Go(func() { defer close(ended); err = s.Run(ctx) })
	stop = func() error {
		cancel()
		running.Wait()
		return err
	}
	t.Cleanup(func() { _ = stop() })
	for errors.Is(s.Health(ctx), stage.ErrNotRunning) {
		select {
		case <-ended:
			return stop
		case <-time.After(time.Millisecond):
		}
	}
	return stop
}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func post(t *testing.T, bus events.Bus, n int) {
	t.Helper()
	for slot := range n {
		if err := bus.Publish(bounded(t), eventstest.Encode(eventstest.Posed(run, 1, slot))); err != nil {
			t.Fatal(err)
		}
	}
}

// collect reads n events of the types.
func collect(t *testing.T, bus events.Bus, n int, types ...events.Type) []*events.Event {
	t.Helper()
	ctx := bounded(t)
	r, err := bus.Read(ctx, events.ReadConfig{Run: run, Types: types})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var list []*events.Event
	for len(list) < n {
		m, _, err := r.Next(ctx)
		if err != nil {
			t.Fatalf("%d of %d events came: %v", len(list), n, err)
		}
		e, err := m.Decode()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

func settled(t *testing.T, bus events.Bus) {
	t.Helper()
	ctx := bounded(t)
	for {
		lag, err := bus.Lag(ctx, run, "worker")
		if err == nil && lag == (events.Lag{}) {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("lag %+v, error %v", lag, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func groups(list []*events.Event) []string {
	var names []string
	for _, e := range list {
		names = append(names, e.Group)
	}
	slices.Sort(names)
	return names
}

func TestEveryEventIsHandledOnce(t *testing.T) {
	bus := natstest.Bus(t)
	const n = 200
	var handled atomic.Int64
	c := config(bus, func(ctx context.Context, batch []*events.Event) []stage.Result {
		handled.Add(int64(len(batch)))
		return stage.Each(answer)(ctx, batch)
	})
	c.Concurrency, c.Batch, c.Linger = 3, 7, time.Millisecond
	stops := []func() error{start(t, c)}
	c.Instance = "1"
	stops = append(stops, start(t, c))
	post(t, bus, n)
	list := collect(t, bus, n, events.TypeCodeSampled)
	settled(t, bus)
	for _, stop := range stops {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	if handled.Load() != n {
		t.Errorf("%d events were handled, want %d", handled.Load(), n)
	}
	want := groups(collect(t, bus, n, events.TypeProblemPosed))
	if d := cmp.Diff(want, groups(list)); d != "" {
		t.Errorf("answered (-want +got):\n%s", d)
	}
}

func TestDrain(t *testing.T) {
	bus := natstest.Bus(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	c := config(bus, stage.Each(func(ctx context.Context, e *events.Event) ([]*events.Event, error) {
		close(entered)
		<-leave
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return answer(ctx, e)
	}))
	s, err := stage.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	post(t, bus, 2)
	<-entered
	cancel()
	select {
	case err := <-ended:
		t.Fatalf("Run returned %v with work in flight", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(leave)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	collect(t, bus, 1, events.TypeCodeSampled)
	lag, err := bus.Lag(bounded(t), run, "worker")
	if err != nil || lag.Pending != 1 {
		t.Errorf("lag %+v, error %v; want the second event pending", lag, err)
	}
}

// After DrainTimeout the stage ends the handler's context and gives the event
// back, without counting a failure.
func TestDrainTimeout(t *testing.T) {
	bus := natstest.Bus(t)
	entered := make(chan struct{})
	c := config(bus, stage.Each(func(ctx context.Context, _ *events.Event) ([]*events.Event, error) {
		close(entered)
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	c.DrainTimeout, c.MaxTries, c.AckWait = 20*time.Millisecond, 1, time.Hour
	post(t, bus, 1)
	stop := start(t, c)
	<-entered
	if err := stop(); err == nil || !strings.Contains(err.Error(), "drain") {
		t.Errorf("Run: %v, want an error about the drain", err)
	}
	c.Handler = stage.Each(answer)
	start(t, c)
	collect(t, bus, 1, events.TypeCodeSampled) // long before AckWait
	settled(t, bus)
}

func TestHeartbeats(t *testing.T) {
	bus := natstest.Bus(t)
	c := config(bus, stage.Each(answer))
	c.HeartbeatEvery = 20 * time.Millisecond
	post(t, bus, 5)
	stop := start(t, c)
	collect(t, bus, 5, events.TypeCodeSampled)
	settled(t, bus)
	ctx := bounded(t)
	r, err := bus.Read(ctx, events.ReadConfig{Run: run, Types: []events.Type{events.TypeStageHeartbeat}})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for beat := 1; ; beat++ {
		m, _, err := r.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		e, err := m.Decode()
		if err != nil {
			t.Fatal(err)
		}
		h := e.Payload.(*events.StageHeartbeat)
		if h.Stage != "worker" || h.Beat < beat || seen[e.Group] {
			t.Fatalf("heartbeat %d: %+v in group %s", beat, h, e.Group)
		}
		seen[e.Group] = true
		if h.Handled == 5 && h.Pending == 0 && h.InFlight == 0 {
			break
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestConfigErrors(t *testing.T) {
	bus := natstest.Bus(t)
	for name, change := range map[string]func(*stage.Config){
		"NoBus":       func(c *stage.Config) { c.Bus = nil },
		"NoHandler":   func(c *stage.Config) { c.Handler = nil },
		"NoTypes":     func(c *stage.Config) { c.Types = nil },
		"UnknownType": func(c *stage.Config) { c.Types = []events.Type{"no.such"} },
		"Name":        func(c *stage.Config) { c.Name = "a.b" },
		"LongName":    func(c *stage.Config) { c.Name = strings.Repeat("n", 100) },
		"Instance":    func(c *stage.Config) { c.Instance = "host.local" },
		"Run":         func(c *stage.Config) { c.Run = "" },
		"Concurrency": func(c *stage.Config) { c.Concurrency = -1 },
		"Batch":       func(c *stage.Config) { c.Batch = 1 << 20 },
		"MaxTries":    func(c *stage.Config) { c.MaxTries = -1 },
		"AckWait":     func(c *stage.Config) { c.AckWait = -1 },
		"Hold":        func(c *stage.Config) { c.HoldDeadLetters = -1 },
		"HoldOnABus":  func(c *stage.Config) { c.Bus, c.HoldDeadLetters = struct{ events.Bus }{bus}, 1 },
		"LagEvery":    func(c *stage.Config) { c.LagEvery = -1 },
		"Linger":      func(c *stage.Config) { c.Linger = -1 },
		"Backoff":     func(c *stage.Config) { c.Backoff = stage.Backoff{Initial: 2, Max: 1} },
		"Jitter":      func(c *stage.Config) { c.Backoff.Jitter = 2 },
	} {
		c := config(bus, stage.Each(answer))
		change(&c)
		if _, err := stage.New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Several stages of a process share a registry.
func TestMetricsAreShared(t *testing.T) {
	registry := prometheus.NewRegistry()
	bus := natstest.Bus(t)
	for _, name := range []string{"one", "two", "two"} {
		c := config(bus, stage.Each(answer))
		c.Name, c.Registerer = name, registry
		if _, err := stage.New(c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	clash := prometheus.NewRegistry()
	clash.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "codea1_stage_handled_total", Help: "Something else."}))
	c := config(bus, stage.Each(answer))
	c.Registerer = clash
	if _, err := stage.New(c); err == nil {
		t.Error("a name taken by another metric gave no error")
	}
}

// BenchmarkStage measures the loop: one output for each event.
func BenchmarkStage(b *testing.B) {
	bus := natstest.Bus(b)
	list := make([]events.Message, b.N)
	for i := range list {
		list[i] = eventstest.Encode(eventstest.Posed(run, 1+i/eventstest.Groups, i%eventstest.Groups))
	}
	for chunk := range slices.Chunk(list, events.MaxPublishBatch) {
		if err := bus.Publish(b.Context(), chunk...); err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var handled atomic.Int64
	c := config(bus, stage.Each(func(ctx context.Context, e *events.Event) ([]*events.Event, error) {
		if handled.Add(1) == int64(b.N) {
			defer cancel() // the drain publishes and acknowledges events in flight
		}
		return answer(ctx, e)
	}))
	c.Concurrency, c.Batch = 4, 64
	s, err := stage.New(c)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	if err := s.Run(ctx); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
