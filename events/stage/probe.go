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

// Probe answers the questions that whoever runs a process asks it, over HTTP:
// /metrics for Prometheus, and /healthz, which is 200 when every part of the
// process is well and 503 with the reasons otherwise.
//
// It serves one process, not one stage: a process without a stage loop reports
// its parts by functions of its own.
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

// Limits of the server: it answers a scraper and a health check, nobody else.
const (
	probeReadTimeout     = 5 * time.Second
	probeHealthTimeout   = 2 * time.Second // for all parts together
	probeIdleTimeout     = time.Minute
	probeShutdownTimeout = 2 * time.Second
	probeHeaderBytes     = 16 << 10
	probeScrapes         = 4 // at a time
)

// ListenProbe takes the address, host:port; connections wait until Serve.
// Anyone who reaches it can read the metrics, and nothing else.
func ListenProbe(ctx context.Context, address string, gatherer prometheus.Gatherer) (*Probe, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("probe: cannot listen on %q: %w", address, err)
	}
	p := &Probe{listener: listener}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{MaxRequestsInFlight: probeScrapes}))
	mux.HandleFunc("GET /healthz", p.healthz)
	p.handler = mux
	return p, nil
}

// Address returns where the probe listens, as host:port.
func (p *Probe) Address() string { return p.listener.Addr().String() }

// Watch adds a part whose health counts. health returns nil when the part is
// well, soon after its context has ended at the latest. A name may be used
// again: each use is a part of its own.
func (p *Probe) Watch(name string, health func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parts = append(p.parts, part{name, health})
}

// Service adds a part that is well while run runs, and returns run so watched:
// a process that waits for something, or whose loop has ended, says so.
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

// Health returns nil when all parts are well, and otherwise what is wrong with
// each of the others. A process without parts has not begun.
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

// Serve answers requests until ctx ends, lets those under way finish, and
// returns nil. Call it once.
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
			return server.Close() // a slow scraper is no reason to stay
		}
		return nil
	})
	return group.Wait()
}

// Close gives the address back where Serve was never called.
func (p *Probe) Close() error { return p.listener.Close() }
