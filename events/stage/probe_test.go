package stage_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"codea1/events"
	"codea1/events/natsbus"
	"codea1/events/natsbus/natstest"
	"codea1/events/stage"
)

// probe serves a probe until the test ends, and returns a function that sends
// it requests.
func probe(t *testing.T, gatherer prometheus.Gatherer) (p *stage.Probe, get func(path string) (status int, body string)) {
	t.Helper()
	p, err := stage.ListenProbe(t.Context(), "127.0.0.1:0", gatherer)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := p.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	t.Cleanup(func() { cancel(); serving.Wait() })
	return p, func(path string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(bounded(t), http.MethodGet, "http://"+p.Address()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for ctx := bounded(t); !is(); time.Sleep(2 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("never: %s", what)
		}
	}
}

// A stage is healthy while its loop runs and its bus answers. Otherwise the
// probe answers with the reason.
func TestProbeOfAStage(t *testing.T) {
	server := natstest.Start(t)
	registry := prometheus.NewRegistry()
	c := config(server.Connect(t, natsbus.Config{}), stage.Each(answer))
	c.Registerer, c.LagEvery, c.Concurrency = registry, 50*time.Millisecond, 2
	s, err := stage.New(c)
	if err != nil {
		t.Fatal(err)
	}
	p, get := probe(t, registry)
	if status, body := get("/healthz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "not running") {
		t.Errorf("with nothing to watch: %d %q", status, body)
	}
	p.Watch("worker", s.Health)
	if err := s.Health(t.Context()); !errors.Is(err, stage.ErrNotRunning) {
		t.Errorf("before it runs: %v", err)
	}

	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer stop()
	healthy := func() bool { status, _ := get("/healthz"); return status == http.StatusOK }
	eventually(t, "healthy", healthy)

	server.Stop()
	var silent *stage.SilenceError
	eventually(t, "unhealthy without a bus", func() bool { return errors.As(s.Health(t.Context()), &silent) })
	if status, body := get("/healthz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "worker: stage worker-0: the bus has not answered for") {
		t.Errorf("without a bus: %d %q", status, body)
	}
	server.Restart()
	eventually(t, "healthy again", healthy)

	_, text := get("/metrics")
	for _, want := range []string{
		`codea1_stage_slots{stage="worker"} 2`,
		`codea1_stage_lag_events{stage="worker"} 0`,
		`codea1_stage_bus_errors_total{operation="lag",stage="worker"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	stop()
	running.Wait()
	if status, body := get("/healthz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "not running") {
		t.Errorf("after it ran: %d %q", status, body)
	}
	if _, text := get("/metrics"); strings.Contains(text, "codea1_stage_lag_events{") || !strings.Contains(text, "codea1_stage_busy_seconds_total{") {
		t.Errorf("a stage that has ended has no lag, and keeps what it counted:\n%s", text)
	}
}

// A process without a stage reports its parts with functions.
func TestProbeOfOtherParts(t *testing.T) {
	p, get := probe(t, prometheus.NewRegistry())
	var mu sync.Mutex
	disk := errors.New("no room")
	p.Watch("disk", func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		return disk
	})
	entered := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	recorder := p.Service("recorder", func(ctx context.Context) error {
		close(entered)
		<-ctx.Done()
		return events.ErrClosed
	})
	if status, body := get("/healthz"); status != http.StatusServiceUnavailable || body != "disk: no room\nrecorder: the loop is not running\n" {
		t.Errorf("%d %q", status, body)
	}
	ended := make(chan error, 1)
	go func() { ended <- recorder(ctx) }()
	<-entered
	mu.Lock()
	disk = nil
	mu.Unlock()
	if status, body := get("/healthz"); status != http.StatusOK || body != "ok: disk, recorder\n" {
		t.Errorf("%d %q", status, body)
	}
	stop()
	if err := <-ended; !errors.Is(err, events.ErrClosed) {
		t.Errorf("the watched service returned %v", err)
	}
	if status, _ := get("/healthz"); status != http.StatusServiceUnavailable {
		t.Errorf("an ended recorder is healthy: %d", status)
	}
	if status, _ := get("/other"); status != http.StatusNotFound {
		t.Errorf("/other: %d", status)
	}
}

func TestProbeAddress(t *testing.T) {
	p, err := stage.ListenProbe(t.Context(), "127.0.0.1:0", prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stage.ListenProbe(t.Context(), p.Address(), prometheus.NewRegistry()); err == nil || !strings.Contains(err.Error(), p.Address()) {
		t.Errorf("an address in use: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Serve(ended); err != nil {
		t.Error(err)
	}
}
