// Package natstest gives tests a real bus: an embedded server in a temporary
// directory that starts in about 10 ms and can be restarted.
package natstest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
	"time"

	"codea1/events/natsbus"
)

// Server is an embedded server on a port of its own.
type Server struct {
	t      testing.TB
	config natsbus.ServerConfig
	server *natsbus.Server
}

const tries = 20

// Start starts a server that ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, config: natsbus.ServerConfig{StoreDir: t.TempDir(), SyncInterval: time.Minute}}
	var err error
	for range tries {
		s.config.Port = FreePort(t)
		if s.server, err = natsbus.StartServer(s.config); err == nil {
			t.Cleanup(s.Stop)
			return s
		}
	}
	t.Fatal(err)
	return nil
}

// Bus returns a bus on a server of its own.
func Bus(t testing.TB) *natsbus.Bus {
	t.Helper()
	return Start(t).Connect(t, natsbus.Config{})
}

// Connect returns a bus that is closed with the test. It overwrites the URL of
// config.
func (s *Server) Connect(t testing.TB, config natsbus.Config) *natsbus.Bus {
	t.Helper()
	config.URL = s.URL()
	return connect(t, config)
}

func connect(t testing.TB, config natsbus.Config) *natsbus.Bus {
	t.Helper()
	bus, err := natsbus.Connect(t.Context(), config)
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

// URL returns the address for clients with the login of the pipeline. It stays
// the same after a restart.
func (s *Server) URL() string { return s.server.URL(natsbus.PipelineUser) }

// StoreDir returns the directory of the streams.
func (s *Server) StoreDir() string { return s.config.StoreDir }

// Stop stops the server; confirmed events stay on disk.
func (s *Server) Stop() { s.server.Shutdown() }

// Restart starts the server again with its store. It stops it first if it runs.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	var err error
	for range tries {
		if s.server, err = natsbus.StartServer(s.config); err == nil {
			return
		}
		// Another process may have the port for a moment.
		time.Sleep(50 * time.Millisecond)
	}
	s.t.Fatal(err)
}

// FreePort returns a port of the loopback address that no program listens on now. It
// is below the ports that Linux gives to connections: a connection of another
// process would otherwise take it before the test listens on it, or while its server is
// stopped.
func FreePort(t testing.TB) int {
	t.Helper()
	const first, ports = 20000, 12000
	var err error
	for range tries {
		port := first + rand.IntN(ports)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal(err)
	return 0
}
