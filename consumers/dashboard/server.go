package dashboard

import (
	"context"
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

// Flags are the dashboard's part of a command line.
type Flags struct {
	Address string `name:"dashboard-address" placeholder:"HOST:PORT" help:"Where the dashboard listens. Anyone who reaches it can read the run: keep it on loopback unless that is meant. By default 127.0.0.1:7070, or any free port when that one is taken."`
	Off     bool   `name:"no-dashboard" help:"Serve no dashboard."`
}

// addressFlag is the flag that Flags names, for messages.
const addressFlag = "--dashboard-address"

// DefaultAddress is tried first when no address is asked for.
const DefaultAddress = "127.0.0.1:7070"

// Limits of the server.
const (
	maxStreams        = 32               // pages that follow at a time
	streamEvery       = time.Second / 2  // between two snapshots to a page, at least
	streamKeepAlive   = 15 * time.Second // between two signs of life, at most
	writeTimeout      = 10 * time.Second // for one snapshot to one page
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = time.Minute
	shutdownTimeout   = 5 * time.Second
	maxHeaderBytes    = 64 << 10
)

// ErrPortInUse is returned by Listen for a port that another process holds.
var ErrPortInUse = errors.New("port in use")

// ServerConfig says what is served and where.
type ServerConfig struct {
	Address  string              // host:port; empty for DefaultAddress or, if that is taken, any free port on loopback
	Follower *Follower           // the run that is shown
	Gatherer prometheus.Gatherer // what /metrics shows
}

// Server serves a run over HTTP: the page on /, its state as JSON on
// /api/state and as server-sent events on /events, Prometheus metrics on
// /metrics, and on /healthz whether the run is being followed.
type Server struct {
	listener net.Listener
	handler  http.Handler
}

// Listen takes the address; connections wait until Serve.
func Listen(ctx context.Context, config ServerConfig) (*Server, error) {
	if config.Follower == nil || config.Gatherer == nil {
		return nil, errors.New("dashboard: the server needs a follower and a gatherer")
	}
	listener, err := listen(ctx, config.Address)
	if err != nil {
		return nil, err
	}
	return &Server{listener: listener, handler: newHandler(config, listener.Addr())}, nil
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
		return nil, fmt.Errorf("dashboard: %w: %s is taken by another process; choose another port than %s with %s, or 0 for any free one",
			ErrPortInUse, wanted, port, addressFlag)
	case err != nil:
		return nil, fmt.Errorf("dashboard: cannot listen on %q (%s): %w", wanted, addressFlag, err)
	}
	return listener, nil
}

// URL returns where the page is.
func (s *Server) URL() string {
	addr := s.listener.Addr().(*net.TCPAddr)
	host := addr.IP.String()
	if addr.IP.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, fmt.Sprint(addr.Port)) + "/"
}

// Serve answers requests until ctx ends, then ends the streams, lets other
// requests finish, and returns nil. It is called once.
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
		// The streams have ended with serving; what is left is short.
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := server.Shutdown(ending); err != nil {
			return errors.Join(fmt.Errorf("dashboard: %w", err), server.Close())
		}
		return nil
	})
	return group.Wait()
}

// Close gives the address back where Serve was never called.
func (s *Server) Close() error { return s.listener.Close() }

func newHandler(config ServerConfig, address net.Addr) http.Handler {
	snapshots := &snapshots{follower: config.Follower}
	streams := &streams{follower: config.Follower, snapshots: snapshots, free: make(chan struct{}, maxStreams)}
	mux := http.NewServeMux()
	mux.Handle("GET /", page())
	mux.HandleFunc("GET /api/state", snapshots.serve)
	mux.HandleFunc("GET /events", streams.serve)
	mux.Handle("GET /metrics", promhttp.HandlerFor(config.Gatherer, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if !config.Follower.Following() {
			http.Error(w, "not following a run", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return guard(mux, address)
}

// guard sets what the browser may do with an answer. On loopback it also
// refuses requests under another host's name: a web page could otherwise have
// its own name resolve to 127.0.0.1 and read the run through the user's
// browser (DNS rebinding).
func guard(next http.Handler, address net.Addr) http.Handler {
	tcp, ok := address.(*net.TCPAddr)
	loopback := ok && tcp.IP.IsLoopback()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if loopback && !isLoopbackName(r.Host) {
			http.Error(w, "this dashboard is served on loopback only", http.StatusForbidden)
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
