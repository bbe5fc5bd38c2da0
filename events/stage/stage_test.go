package stage_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/natsbus"
	"codea1/events/natsbus/natstest"
	"codea1/events/stage"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const run = "r1"

// config is a stage that answers problem.posed, impatient enough for a test.
func config(bus events.Bus, handler stage.Handler) stage.Config {
	return stage.Config{
		Bus: bus, Run: run, Name: "worker",
		Types:   []events.Type{events.TypeProblemPosed},
		Handler: handler,
		Backoff: stage.Backoff{Initial: time.Millisecond, Max: 50 * time.Millisecond},
	}
}

func answer(_ context.Context, e *events.Event) ([]*events.Event, error) {
	return []*events.Event{bustest.CodeSampled(e)}, nil
}

// start runs a stage until stop is called or the test ends; stop returns what
// Run returned.
func start(t *testing.T, c stage.Config) (stop func() error) {
	t.Helper()
	s, err := stage.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { err = s.Run(ctx) })
	stop = func() error {
		cancel()
		running.Wait()
		return err
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func post(t *testing.T, bus events.Bus, n int) {
	t.Helper()
	for slot := range n {
		if err := bus.Publish(bounded(t), bustest.Encode(bustest.Posed(run, 1, slot))); err != nil {
			t.Fatal(err)
		}
	}
}

// collect reads until n events of the types have come, and returns them.
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

func TestWhatBecomesOfAnEvent(t *testing.T) {
	bus := natstest.Bus(t)
	var calls [8]atomic.Int64
	c := config(bus, stage.Each(func(ctx context.Context, e *events.Event) ([]*events.Event, error) {
		slot := e.Payload.(*events.ProblemPosed).Plan.Slot
		n := calls[slot].Add(1)
		switch {
		case slot == 1: // never works
			return nil, errors.New("no luck")
		case slot == 2 && n < 3: // works at the third attempt
			return nil, errors.New("not this time")
		case slot == 3 && n < 10: // is put off more often than it may fail
			return nil, stage.Snooze(time.Millisecond)
		case slot == 4:
			return nil, stage.Drop(events.DropStale, "too old")
		case slot == 5:
			panic("nil map")
		case slot == 6: // outlives HandleTimeout
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		return answer(ctx, e)
	}))
	c.Concurrency, c.MaxAttempts, c.HandleTimeout = 8, 4, 200*time.Millisecond
	registry := prometheus.NewRegistry()
	c.Registerer = registry
	stop := start(t, c)
	post(t, bus, len(calls))
	sampled := collect(t, bus, 4, events.TypeCodeSampled)
	dropped := collect(t, bus, 4, events.TypeGroupDropped)
	settled(t, bus)
	if err := stop(); err != nil {
		t.Error(err)
	}

	slot := func(i int) string { return bustest.Posed(run, 1, i).Group }
	if d := cmp.Diff([]string{slot(0), slot(2), slot(3), slot(7)}, groups(sampled)); d != "" {
		t.Errorf("answered (-want +got):\n%s", d)
	}
	got := make(map[string]string)
	for _, e := range dropped {
		g := e.Payload.(*events.GroupDropped)
		got[e.Group] = fmt.Sprintf("%s %s %d/%d of %d: %s", g.Stage, g.Reason, g.Step, g.Slot, g.Groups, g.Detail)
		if e.CausationID != bustest.Posed(run, 1, g.Slot).ID || e.Source != "worker-0" {
			t.Errorf("%s was dropped by %s because of %s", e.Group, e.Source, e.CausationID)
		}
	}
	want := map[string]string{
		slot(1): "worker retries 1/1 of 4096: failed 4 times, last: no luck",
		slot(4): "worker stale 1/4 of 4096: too old",
		slot(5): "worker retries 1/5 of 4096: failed 4 times, last: handler panicked: nil map",
		slot(6): "worker retries 1/6 of 4096: failed 4 times, last: handler ran over 200ms: context deadline exceeded",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("dropped (-want +got):\n%s", d)
	}
	if n := calls[3].Load(); n != 10 {
		t.Errorf("the snoozed event was handled %d times, want 10", n)
	}

	metrics := gather(t, registry)
	for name, want := range map[string]float64{
		"codea1_stage_handled_total worker":         8,
		"codea1_stage_failed_total worker":          2 + 3*4,
		"codea1_stage_snoozed_total worker":         9,
		"codea1_stage_dropped_total retries worker": 3,
		"codea1_stage_dropped_total stale worker":   1,
		"codea1_stage_in_flight_events worker":      0,
	} {
		if metrics[name] != want {
			t.Errorf("%s is %v, want %v", name, metrics[name], want)
		}
	}
}

// gather returns counters and gauges by name and label values.
func gather(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			values[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return values
}

// One event that makes its whole batch fail takes nobody with it.
func TestABatchThatFailsAsAWhole(t *testing.T) {
	for name, fail := range map[string]func() []stage.Result{
		"Panic":       func() []stage.Result { panic("bad weather") },
		"TooFew":      func() []stage.Result { return nil },
		"TooManyOfIt": func() []stage.Result { return make([]stage.Result, 100) },
	} {
		t.Run(name, func(t *testing.T) {
			bus := natstest.Bus(t)
			const n = 6
			post(t, bus, n)
			c := config(bus, func(ctx context.Context, batch []*events.Event) []stage.Result {
				for _, e := range batch {
					if e.Payload.(*events.ProblemPosed).Plan.Slot == 3 {
						return fail()
					}
				}
				return stage.Each(answer)(ctx, batch)
			})
			c.Batch, c.MaxAttempts = n, 2
			start(t, c)
			if got := collect(t, bus, n-1, events.TypeCodeSampled); len(got) != n-1 {
				t.Errorf("%d events were answered", len(got))
			}
			dropped := collect(t, bus, 1, events.TypeGroupDropped)[0]
			if want := bustest.Posed(run, 1, 3).Group; dropped.Group != want {
				t.Errorf("%s was dropped, want %s", dropped.Group, want)
			}
			settled(t, bus)
		})
	}
}

func TestMalformedPayload(t *testing.T) {
	bus := natstest.Bus(t)
	broken := bustest.Encode(bustest.Posed(run, 3, 5))
	broken.Encoding, broken.Data = events.EncodingNone, []byte("no msgpack")
	if err := bus.Publish(bounded(t), broken); err != nil {
		t.Fatal(err)
	}
	post(t, bus, 1)
	c := config(bus, stage.Each(answer))
	c.Batch = 2
	start(t, c)
	g := collect(t, bus, 1, events.TypeGroupDropped)[0].Payload.(*events.GroupDropped)
	if g.Reason != events.DropMalformed || g.Step != 3 || g.Slot != 5 || !strings.Contains(g.Detail, broken.ID) {
		t.Errorf("dropped: %+v", g)
	}
	collect(t, bus, 1, events.TypeCodeSampled)
	settled(t, bus)
}

// An output that contradicts what is stored drops the group; the others of the
// batch are published.
func TestContradictionDropsTheGroup(t *testing.T) {
	bus := natstest.Bus(t)
	// Another cause has led to a code.sampled and to a group.dropped already.
	other := bustest.Posed(run, 1, 0)
	sampled := bustest.Encode(bustest.CodeSampled(other))
	sampled.ID = strings.Repeat("ab", 16)
	gone := bustest.Encode(events.Caused(bustest.CodeSampled(bustest.Posed(run, 1, 1)), "x", bustest.At,
		&events.GroupDropped{Stage: "x", Reason: events.DropStale}))
	if err := bus.Publish(bounded(t), sampled, gone); err != nil {
		t.Fatal(err)
	}
	post(t, bus, 3)
	c := config(bus, stage.Each(func(ctx context.Context, e *events.Event) ([]*events.Event, error) {
		if e.Payload.(*events.ProblemPosed).Plan.Slot == 1 {
			return nil, stage.Drop(events.DropStale, "too old here as well")
		}
		return answer(ctx, e)
	}))
	c.Batch = 3
	start(t, c)
	dropped := collect(t, bus, 2, events.TypeGroupDropped)
	settled(t, bus)
	if g := dropped[0].Payload.(*events.GroupDropped); g.Stage != "x" {
		t.Errorf("the first group.dropped of the group does not stand: %+v", g)
	}
	if g := dropped[1].Payload.(*events.GroupDropped); g.Reason != events.DropLineage || g.Slot != 0 {
		t.Errorf("dropped: %+v", g)
	}
	if got := collect(t, bus, 2, events.TypeCodeSampled); got[1].Group != bustest.Posed(run, 1, 2).Group {
		t.Errorf("answered %s", got[1].Group)
	}
}

// The work of several AckWaits is done once. A machine that stops this process
// for long decides nothing.
func TestLongWorkIsNotDeliveredAgain(t *testing.T) {
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

// A drain that takes too long ends the handler's context and hands the event
// back, without counting it as a failure.
func TestDrainTimeout(t *testing.T) {
	bus := natstest.Bus(t)
	entered := make(chan struct{})
	c := config(bus, stage.Each(func(ctx context.Context, _ *events.Event) ([]*events.Event, error) {
		close(entered)
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	c.DrainTimeout, c.MaxAttempts, c.AckWait = 20*time.Millisecond, 1, time.Hour
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

func TestBusClosed(t *testing.T) {
	server := natstest.Start(t)
	bus := server.Connect(t, natsbus.Config{})
	s, err := stage.New(config(bus, stage.Each(answer)))
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

// The server goes away several times while events stream through two
// instances; every event is answered, and nothing is there twice.
func TestServerRestarts(t *testing.T) {
	server := natstest.Start(t)
	const n, restarts = 120, 3
	c := config(nil, stage.Each(answer))
	c.AckWait, c.Concurrency, c.Batch = 2*time.Second, 2, 3
	for i := range 2 {
		c.Bus, c.Instance = server.Connect(t, natsbus.Config{}), fmt.Sprint(i)
		start(t, c)
	}
	bus := server.Connect(t, natsbus.Config{})
	ctx := bounded(t)
	var poster sync.WaitGroup
	poster.Go(func() {
		for slot := range n {
			m := bustest.Encode(bustest.Posed(run, 1, slot))
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
		"MaxAttempts": func(c *stage.Config) { c.MaxAttempts = -1 },
		"AckWait":     func(c *stage.Config) { c.AckWait = -1 },
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

func Example() {
	// A worker that turns each problem.posed into what its function returns.
	config := stage.Config{
		Run:   "r1",
		Name:  "generation",
		Types: []events.Type{events.TypeProblemPosed},
		Handler: stage.Each(func(ctx context.Context, e *events.Event) ([]*events.Event, error) {
			posed := e.Payload.(*events.ProblemPosed)
			if posed.Plan.CodeVersion > 3 {
				return nil, stage.Snooze(time.Second) // the weights are not here yet
			}
			return nil, stage.Drop(events.DropStale, "version 4 is training already")
		}),
		Logger: slog.Default(),
	}
	_, err := stage.New(config)
	fmt.Println(err)
	// Output: stage generation: needs a bus and a handler
}
