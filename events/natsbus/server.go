package natsbus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	natsserver "github.com/nats-io/nats-server/v2/server"
)

// ServerConfig describes an embedded server.
type ServerConfig struct {
	// StoreDir is the directory of the streams. It is created if it is missing.
	// Only one server at a time can use it.
	StoreDir string
	// Port is the listening port. 0 means 4222, the default of the nats CLI, or
	// any free port if that is in use.
	Port int
	// Run is the run that TapUser can watch; none without it.
	Run string
	// SyncInterval is the interval in which the store is synced. A process that
	// dies loses no confirmed event; a machine that loses power loses the
	// events of up to one interval. With 0 every event is synced before it is
	// confirmed.
	SyncInterval time.Duration
	// Logger gets the server's notices at debug level, and its errors and
	// warnings at warn level; default none.
	Logger *slog.Logger
}

// Server is a NATS server inside this process.
type Server struct {
	server   *natsserver.Server
	storeDir string
	log      *serverLog
	lock     *flock.Flock
	gate     *gate
	address  string
}

const (
	// serverHost is the listening address: connections are not encrypted.
	serverHost         = "127.0.0.1"
	serverStartTimeout = 10 * time.Second
	// serverMemory bounds the memory for streams, which have only the state of
	// readers in memory.
	serverMemory = 64 << 20
	// serverStore is no limit: the disk and the limits of the streams apply.
	// The server's default, three quarters of the free space, would refuse
	// larger stream limits.
	serverStore = 1 << 50
	// probeBytes must fit on the disk for the server to start.
	probeBytes = 1 << 20
	// watchInterval is the interval in which Wait checks the server.
	watchInterval = 250 * time.Millisecond
)

// StartServer starts a server and returns once it accepts connections.
func StartServer(config ServerConfig) (*Server, error) {
	if config.StoreDir == "" {
		return nil, errors.New("nats: the embedded server needs a store directory")
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	port, err := choosePort(config.Port)
	if err != nil {
		return nil, err
	}
	lock, err := lockStore(config.StoreDir)
	if err != nil {
		return nil, err
	}
	s := &Server{storeDir: config.StoreDir, log: &serverLog{logger: config.Logger}, lock: lock}
	if s.gate, err = newGate(config.StoreDir, config.Run); err != nil {
		s.Shutdown()
		return nil, err
	}
	err = s.start(config, port)
	if err != nil && config.Port == 0 && port != natsserver.RANDOM_PORT {
		// The default port may be taken since it was found free.
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
		ServerName:                 "codea1",
		Host:                       serverHost,
		Port:                       port,
		MaxPayload:                 maxMessageBytes,
		MaxConn:                    maxConnections,
		MaxSubs:                    maxSubscriptions,
		CustomClientAuthentication: s.gate,
		NoSigs:                     true,
		DisableJetStreamBanner:     true,
		JetStream:                  true,
		StoreDir:                   config.StoreDir,
		JetStreamMaxMemory:         serverMemory,
		JetStreamMaxStore:          serverStore,
		SyncInterval:               config.SyncInterval,
		SyncAlways:                 config.SyncInterval == 0,
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
	s.address = s.server.Addr().String()
	if err := os.WriteFile(AddressFile(config.StoreDir), []byte(s.address), 0o600); err != nil {
		return fmt.Errorf("nats: address of the embedded server: %w", err)
	}
	return s.gate.openTap(s.server)
}

// CheckPort returns an error if no server can listen on the port now.
func CheckPort(port int) error {
	_, err := choosePort(port)
	return err
}

// choosePort returns a port that is free now.
func choosePort(port int) (int, error) {
	if port < 0 || port > 65535 {
		return 0, fmt.Errorf("nats: port %d is outside 0 to 65535", port)
	}
	try := port
	if try == 0 {
		try = natsserver.DEFAULT_PORT
	}
	l, err := net.Listen("tcp", net.JoinHostPort(serverHost, strconv.Itoa(try)))
	if err == nil {
		return try, l.Close()
	}
	if port == 0 && errors.Is(err, syscall.EADDRINUSE) {
		return natsserver.RANDOM_PORT, nil
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return 0, fmt.Errorf("nats: port %d on %s is in use; choose another with --port, or 0 for any free one", port, serverHost)
	}
	return 0, fmt.Errorf("nats: cannot listen on %s port %d: %w", serverHost, try, err)
}

// lockStore creates the store directory and locks it. Two servers on one store
// would corrupt it.
func lockStore(dir string) (*flock.Flock, error) {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.Chmod(dir, 0o700) // it holds the passwords
	}
	if err != nil {
		return nil, fmt.Errorf("nats: cannot create the event store: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if err == nil && !locked {
		return nil, fmt.Errorf("nats: the event store %s is in use by another process", dir)
	}
	if err == nil {
		err = probe(dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("nats: cannot write to the event store: %w", err), lock.Close())
	}
	return lock, nil
}

// probe checks that the disk has room for an event. The server itself writes
// nothing before the first event.
func probe(dir string) error {
	name := filepath.Join(dir, "probe")
	defer os.Remove(name)
	return os.WriteFile(name, make([]byte, probeBytes), 0o600)
}

// URL returns the address for clients on this machine, with a login. An empty
// user gives the address without one.
func (s *Server) URL(user string) string {
	u := url.URL{Scheme: "nats", Host: s.address}
	if user != "" {
		u.User = url.UserPassword(user, s.gate.passwords[user])
	}
	return u.String()
}

// Wait blocks while the server stores events. It returns nil when ctx ends, and
// an error if the server cannot store events any more, for example because the
// disk is full. No confirmed event is lost then.
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
		// A single failed check may be a stream that is being made.
		if reason != "" && before != "" {
			if strings.Contains(reason, syscall.ENOSPC.Error()) {
				reason += "; free some disk space and resume the run"
			}
			return fmt.Errorf("nats: the event store %s cannot be written: %s", s.storeDir, reason)
		}
		before = reason
	}
}

// unhealthy returns the reason why the server does not store, or "".
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
	if s.lock.Locked() {
		_ = os.Remove(AddressFile(s.storeDir)) // a crash leaves it, too
	}
	s.lock.Close()
}

func (s *Server) stop() {
	if s.server != nil {
		s.server.Shutdown()
		s.server.WaitForShutdown()
	}
}
