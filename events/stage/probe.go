package stage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
)

// Probe serves /metrics for Prometheus and /healthz over HTTP. /healthz answers
// 200 if every part of the process is healthy, and otherwise 503 with the
// reasons.
//
// It serves one process, not one stage: a process without a Stage reports its
// parts with Watch or Service.
type Probe struct {
	listener net.Listener
	handler  http.Handler

	mu    sync.Mutex
	parts []part
}

type part struct {
	name   string
	health func(context.Context) error
}

// Limits of the server, whose clients are a scraper and a health check.
const (
	probeReadTimeout     = 5 * time.Second
	probeHealthTimeout   = 2 * time.Second // for all parts together
	probeIdleTimeout     = time.Minute
	probeShutdownTimeout = 2 * time.Second
	probeHeaderBytes     = 16 << 10
	probeScrapes         = 4 // at a time
)

// ListenProbe listens on the address, host:port; connections wait until Serve.
// Every client that reaches it can read the metrics, and nothing else.
func ListenProbe(ctx context.Context, address string, gatherer prometheus.Gatherer) (*Probe, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("probe: cannot listen on %q: %w", address, err)
	}
	p := &Probe{listener: listener}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{MaxRequestsInFlight: probeScrapes, EnableOpenMetrics: true}))
	mux.HandleFunc("GET /healthz", p.healthz)
	p.handler = mux
	return p, nil
}

// Address returns the listening address as host:port.
func (p *Probe) Address() string { return p.listener.Addr().String() }

// Watch adds a part of the process. health returns nil if the part is healthy;
// it must return soon after its context ends. If a name is used twice, both
// parts count.
func (p *Probe) Watch(name string, health func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parts = append(p.parts, part{name, health})
}

// Service adds a part that is healthy while run runs. It returns run with that
// check.
func (p *Probe) Service(name string, run func(context.Context) error) func(context.Context) error {
	var mu sync.Mutex
	running := false
	set := func(to bool) {
		mu.Lock()
		defer mu.Unlock()
		running = to
	}
	p.Watch(name, func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if !running {
			return ErrNotRunning
		}
		return nil
	})
	return func(ctx context.Context) error {
		set(true)
		defer set(false)
		return run(ctx)
	}
}

// Health returns nil if all parts are healthy, and otherwise the errors of the
// others. A process without parts is not healthy.
func (p *Probe) Health(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeHealthTimeout)
	defer cancel()
	p.mu.Lock()
	parts := slices.Clone(p.parts)
	p.mu.Unlock()
	if len(parts) == 0 {
		return ErrNotRunning
	}
	var errs []error
	for _, part := range parts {
		if err := part.health(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", part.name, err))
		}
	}
	return errors.Join(errs...)
}

func (p *Probe) healthz(w http.ResponseWriter, r *http.Request) {
	if err := p.Health(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for _, part := range p.parts {
		names = append(names, part.name)
	}
	fmt.Fprintln(w, "ok:", strings.Join(names, ", "))
}

// Serve answers requests until ctx ends, waits for those under way, and returns
// nil. Call it once.
func (p *Probe) Serve(ctx context.Context) error {
	server := &http.Server{
		Handler:           p.handler,
		ReadHeaderTimeout: probeReadTimeout,
		ReadTimeout:       probeReadTimeout,
		IdleTimeout:       probeIdleTimeout,
		MaxHeaderBytes:    probeHeaderBytes,
	}
	group, serving := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("probe: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-serving.Done()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeShutdownTimeout)
		defer cancel()
		if server.Shutdown(ending) != nil {
			return server.Close() // do not wait for a slow scraper
		}
		return nil
	})
	return group.Wait()
}
