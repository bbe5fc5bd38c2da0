package dashboard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
)

// Flags are the command-line flags of the dashboard.
type Flags struct {
	Address string `name:"dashboard-address" yaml:"dashboard-address" change:"resume" placeholder:"HOST:PORT" help:"Address of the dashboard. One that other machines reach asks for the token in the URL that is printed. The default is 127.0.0.1:7070, or any free port if that one is taken."`
	Off     bool   `name:"no-dashboard" yaml:"no-dashboard" change:"resume" help:"Do not serve the dashboard."`
}

// addressFlag is the flag of Flags.Address, for messages.
const addressFlag = "--dashboard-address"

// DefaultAddress is the address to try first without --dashboard-address.
const DefaultAddress = "127.0.0.1:7070"

// Limits of the server.
const (
	maxStreams        = 32               // pages at the same time
	streamEvery       = time.Second / 2  // shortest time between two snapshots to a page
	streamKeepAlive   = 15 * time.Second // longest time between two messages to a page
	writeTimeout      = 10 * time.Second // for one snapshot to one page
	lastWriteTimeout  = 2 * time.Second  // for the last one; shorter than shutdownTimeout
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = time.Minute
	shutdownTimeout   = 5 * time.Second
	maxHeaderBytes    = 64 << 10
)

// ErrPortInUse is returned by Listen for a port that another process uses.
var ErrPortInUse = errors.New("port in use")

// Server serves a run over HTTP: the page on /, the state as JSON on /api/state
// and as server-sent events on /events, Prometheus metrics on /metrics. api.go has
// the rest of /api. /healthz
// answers 200 while the follower reads the bus.
type Server struct {
	listener net.Listener
	handler  http.Handler
	token    string // empty on loopback
}

// Listen opens the address, host:port, for the page of the follower's run and
// the gatherer's metrics. The empty address is DefaultAddress or, if it is taken,
// any free port on loopback. others has the runs to compare with; nil for none.
// Connections wait until Serve.
func Listen(ctx context.Context, address string, follower *Follower, others OtherRuns, metrics prometheus.Gatherer) (*Server, error) {
	listener, err := listen(ctx, address)
	if err != nil {
		return nil, err
	}
	s := &Server{listener: listener}
	if !isLoopback(listener.Addr()) {
		s.token = rand.Text()
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	s.handler = newHandler(follower, others, metrics, listener.Addr(), s.token, "codea1-"+port) // cookies of a host are for all its ports
	return s, nil
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	wanted := address
	if wanted == "" {
		wanted = DefaultAddress
	}
	listener, err := lc.Listen(ctx, "tcp", wanted)
	if address == "" && errors.Is(err, syscall.EADDRINUSE) {
		listener, err = lc.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		_, port, _ := net.SplitHostPort(wanted)
		return nil, fmt.Errorf("dashboard: %w: %s is taken by another process; set another port than %s with %s, or port 0 for any free one",
			ErrPortInUse, wanted, port, addressFlag)
	case err != nil:
		return nil, fmt.Errorf("dashboard: cannot listen on %q (%s): %w", wanted, addressFlag, err)
	}
	return listener, nil
}

// URL returns the URL of the page, with its token.
func (s *Server) URL() string {
	addr := s.listener.Addr().(*net.TCPAddr)
	host := addr.IP.String()
	if addr.IP.IsUnspecified() {
		host = "localhost"
	}
	url := "http://" + net.JoinHostPort(host, fmt.Sprint(addr.Port)) + "/"
	if s.token != "" {
		url += "?token=" + s.token
	}
	return url
}

// Serve answers requests until ctx ends. Then it ends the streams, waits for the
// other requests, and returns nil. It is called once.
func (s *Server) Serve(ctx context.Context) error {
	group, serving := errgroup.WithContext(ctx)
	server := &http.Server{
		Handler:           s.handler,
		BaseContext:       func(net.Listener) context.Context { return serving },
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
	}
	group.Go(func() error {
		if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("dashboard: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-serving.Done()
		// The end of serving ends the streams. Other requests are short.
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := server.Shutdown(ending); err != nil {
			return errors.Join(fmt.Errorf("dashboard: %w", err), server.Close())
		}
		return nil
	})
	return group.Wait()
}

// Close closes the address if Serve is never called.
func (s *Server) Close() error { return s.listener.Close() }

func newHandler(follower *Follower, others OtherRuns, metrics prometheus.Gatherer, address net.Addr, token, cookie string) http.Handler {
	snapshots := &snapshots{follower: follower}
	streams := &streams{follower: follower, snapshots: snapshots, slots: make(chan struct{}, maxStreams)}
	mux := http.NewServeMux()
	mux.Handle("GET /", page())
	mux.HandleFunc("GET /api/state", snapshots.serve)
	mux.HandleFunc("GET /events", streams.serve)
	(&queries{follower, others, make(chan struct{}, maxReads)}).register(mux)
	mux.Handle("GET /metrics", promhttp.HandlerFor(prometheus.Gatherers{metrics, Metrics(follower)}, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if !follower.Following() {
			http.Error(w, "not following a run", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return guard(admit(mux, token, cookie), address)
}

// guard sets the security headers of an answer. On loopback it also refuses
// requests with another host name. Otherwise a web page could let its own name
// resolve to 127.0.0.1 and read the run through the user's browser (DNS
// rebinding).
func guard(next http.Handler, address net.Addr) http.Handler {
	loopback := isLoopback(address)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if loopback && !isLoopbackName(r.Host) {
			http.Error(w, "this dashboard accepts only loopback host names", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}

func isLoopbackName(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
