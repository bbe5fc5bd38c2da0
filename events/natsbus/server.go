package natsbus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"codea1/events"
)

// ServerConfig describes an embedded server.
type ServerConfig struct {
	// StoreDir holds the streams. It is created when missing and belongs to
	// one server at a time.
	StoreDir string
	// Host is the address listened on, 127.0.0.1 by default: the server asks
	// nobody who they are.
	Host string
	// Port is where to listen. 0 takes 4222, where the nats CLI looks, and any
	// free port if that one is taken; another port is taken or refused.
	Port int
	// MaxPayload is the largest message in bytes, by default what an event of
	// events.MaxPayloadBytes needs.
	MaxPayload int
	// SyncInterval is how often written events are forced to disk. A process
	// that dies loses nothing it has confirmed; a machine that loses power
	// loses up to this much. 0 forces every event before it is confirmed.
	SyncInterval time.Duration
	// Logger gets the server's notices at debug level and its errors and
	// warnings at warn; none by default.
	Logger *slog.Logger
}

// Server is a NATS server inside this process.
type Server struct {
	server   *natsserver.Server
	storeDir string
	log      *serverLog
	lock     *os.File
}

const (
	serverStartTimeout = 10 * time.Second
	// serverMemory bounds what the server keeps in memory for streams: only
	// the state of readers.
	serverMemory = 64 << 20
	// serverStore leaves the limit to the disk and to the streams' own; the
	// server's default, three quarters of what is free now, would refuse a
	// stream whose limit is larger.
	serverStore = 1 << 50
	// probeBytes is what a store must have room for to be started on.
	probeBytes = 1 << 20
	// watchInterval is how often Wait asks whether the server still stores.
	watchInterval = 250 * time.Millisecond
)

// StartServer starts a server and returns once it accepts connections. Its
// errors are sentences for the user.
func StartServer(config ServerConfig) (*Server, error) {
	if config.StoreDir == "" {
		return nil, errors.New("nats: the embedded server needs a store directory")
	}
	if config.Host == "" {
		config.Host = "127.0.0.1"
	}
	if config.MaxPayload == 0 {
		config.MaxPayload = maxMessageBytes
	}
	if config.MaxPayload < maxMessageBytes {
		return nil, fmt.Errorf("nats: a server limit of %d bytes a message is too small for an event of %d", config.MaxPayload, events.MaxPayloadBytes)
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	port, err := choosePort(config.Host, config.Port)
	if err != nil {
		return nil, err
	}
	lock, err := lockStore(config.StoreDir)
	if err != nil {
		return nil, err
	}
	s := &Server{storeDir: config.StoreDir, log: &serverLog{logger: config.Logger}, lock: lock}
	err = s.start(config, port)
	if err != nil && config.Port == 0 && port != natsserver.RANDOM_PORT {
		// Somebody may have taken the default port since it was found free.
		s.stop()
		s.log = &serverLog{logger: config.Logger}
		err = s.start(config, natsserver.RANDOM_PORT)
	}
	if err != nil {
		s.Shutdown()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(config ServerConfig, port int) error {
	var err error
	s.server, err = natsserver.NewServer(&natsserver.Options{
		ServerName:             "codea1",
		Host:                   config.Host,
		Port:                   port,
		MaxPayload:             int32(config.MaxPayload),
		NoSigs:                 true,
		DisableJetStreamBanner: true,
		JetStream:              true,
		StoreDir:               config.StoreDir,
		JetStreamMaxMemory:     serverMemory,
		JetStreamMaxStore:      serverStore,
		SyncInterval:           config.SyncInterval,
		SyncAlways:             config.SyncInterval == 0,
	})
	if err != nil {
		return fmt.Errorf("nats: embedded server: %w", err)
	}
	s.server.SetLoggerV2(s.log, false, false, false)
	s.server.Start()
	for deadline := time.Now().Add(serverStartTimeout); !s.server.ReadyForConnections(50 * time.Millisecond); {
		if reason := s.log.fatal(); reason != "" {
			return fmt.Errorf("nats: the embedded server cannot start with store %s: %s", config.StoreDir, reason)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("nats: the embedded server was not ready after %v", serverStartTimeout)
		}
	}
	if !s.server.JetStreamEnabled() {
		return fmt.Errorf("nats: the embedded server cannot use store %s: %s", config.StoreDir, s.log.lastError())
	}
	return nil
}

// choosePort returns a port that was free a moment ago.
func choosePort(host string, port int) (int, error) {
	if port < 0 || port > 65535 {
		return 0, fmt.Errorf("nats: port %d is outside 0 to 65535", port)
	}
	try := port
	if try == 0 {
		try = natsserver.DEFAULT_PORT
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(try)))
	if err == nil {
		return try, l.Close()
	}
	if port == 0 && errors.Is(err, syscall.EADDRINUSE) {
		return natsserver.RANDOM_PORT, nil
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return 0, fmt.Errorf("nats: port %d on %s is in use; choose another with --port, or 0 for any free one", port, host)
	}
	return 0, fmt.Errorf("nats: cannot listen on %s port %d: %w", host, try, err)
}

// lockStore creates the store directory and takes it for this process. Two
// servers on one store would each believe to know its end.
func lockStore(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("nats: cannot create the event store: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("nats: cannot write to the event store: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("nats: the event store %s is in use by another process", dir)
		}
		return nil, fmt.Errorf("nats: cannot lock the event store %s: %w", dir, err)
	}
	if err := probe(dir); err != nil {
		f.Close()
		return nil, fmt.Errorf("nats: cannot write to the event store: %w", err)
	}
	return f, nil
}

// probe finds out whether the disk has room for an event. The server itself
// writes nothing until the first one comes.
func probe(dir string) error {
	name := filepath.Join(dir, "probe")
	defer os.Remove(name)
	return os.WriteFile(name, make([]byte, probeBytes), 0o644)
}

// ClientURL returns the address for clients of this machine.
func (s *Server) ClientURL() string { return s.server.ClientURL() }

// Wait blocks while the server stores events. It returns nil when ctx ends,
// and an error when the server can no longer store, for example because the
// disk is full; nothing it has confirmed is lost.
func (s *Server) Wait(ctx context.Context) error {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for before := ""; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		reason := s.unhealthy()
		// Once may be a stream that is just being made.
		if reason != "" && before != "" {
			if strings.Contains(reason, syscall.ENOSPC.Error()) {
				reason += "; free some disk space and resume the run"
			}
			return fmt.Errorf("nats: the event store %s cannot be written any more: %s", s.storeDir, reason)
		}
		before = reason
	}
}

// unhealthy returns why the server does not store, or "".
func (s *Server) unhealthy() string {
	if !s.server.Running() {
		return ""
	}
	return s.server.Healthz(nil).Error
}

// Shutdown stops the server and waits until its store is closed. A second
// Shutdown does nothing.
func (s *Server) Shutdown() {
	s.stop()
	s.lock.Close()
}

func (s *Server) stop() {
	if s.server != nil {
		s.server.Shutdown()
		s.server.WaitForShutdown()
	}
}
