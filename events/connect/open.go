package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"codea1/events"
	"codea1/events/kafkabus"
	"codea1/events/natsbus"
)

// SyncInterval is the interval in which an embedded server syncs its store.
// A process that dies loses nothing. A machine that loses power may lose the
// last seconds of the bus while the event log, which syncs at once, still has
// them: the next attempt reports that its position is past the end of the
// stream.
const SyncInterval = 10 * time.Second

// Open connects to the bus of the URL. The servers know the connection by name.
// It fails if no server can be reached.
func (f *Flags) Open(ctx context.Context, name string, logger *slog.Logger) (events.Broker, error) {
	return f.open(ctx, name, false, logger)
}

// Join is Open for a process that may start before the servers: it waits until
// one can be reached. A refused login is an error at once.
func (f *Flags) Join(ctx context.Context, name string, logger *slog.Logger) (events.Broker, error) {
	return f.open(ctx, name, true, logger)
}

func (f *Flags) open(ctx context.Context, name string, wait bool, logger *slog.Logger) (events.Broker, error) {
	if err := f.ValidateURL(); err != nil {
		return nil, err
	}
	password, err := readSecret("--bus-password-file", f.PasswordFile)
	if err != nil {
		return nil, err
	}
	if brokers, ok := strings.CutPrefix(f.URL, KafkaScheme); ok {
		config := kafkabus.Config{
			Brokers: strings.Split(brokers, ","), Name: name, User: f.User, Password: password, Wait: wait,
			Replicas: f.Replicas, Partitions: f.Partitions,
			TLS: f.TLS, CAFile: f.CAFile, CertFile: f.CertFile, KeyFile: f.KeyFile, Logger: logger,
		}
		if f.User != "" {
			config.Mechanism = strings.ToUpper(f.SASL)
		}
		bus, err := kafkabus.Connect(ctx, config)
		if err != nil {
			return nil, err // not a nil *Bus in the interface
		}
		return bus, nil
	}
	token, err := readSecret("--bus-token-file", f.TokenFile)
	if err != nil {
		return nil, err
	}
	bus, err := natsbus.Connect(ctx, natsbus.Config{
		URL: f.URL, Name: name, Wait: wait, User: f.User, Password: password, Token: token, NKeyFile: f.NKeyFile, CredsFile: f.CredsFile, APIPrefix: f.APIPrefix,
		CAFile: f.CAFile, CertFile: f.CertFile, KeyFile: f.KeyFile, Replicas: f.Replicas, MaxStreamBytes: f.StreamMiB << 20, Logger: logger,
	})
	if errors.Is(err, nats.ErrAuthorization) && f.User == "" {
		err = fmt.Errorf("%w; %s", err, EmbeddedLogin)
	}
	if err != nil {
		return nil, err
	}
	return bus, nil
}

// OpenEmbedded starts a NATS server on the store directory and connects to it.
// The run's stream exists when it returns. Close the bus before the server is
// shut down.
func (f *Flags) OpenEmbedded(ctx context.Context, run, store string, port int, logger *slog.Logger) (*natsbus.Server, events.Broker, error) {
	server, err := natsbus.StartServer(natsbus.ServerConfig{StoreDir: store, Run: run, Port: port, Logger: logger.With("part", "nats"), SyncInterval: SyncInterval})
	if err != nil {
		return nil, nil, err
	}
	bus, err := natsbus.Connect(ctx, natsbus.Config{
		Server: server, Name: "codea1-" + run, MaxStreamBytes: f.StreamMiB << 20, Logger: logger.With("part", "bus"),
	})
	if err != nil {
		server.Shutdown()
		return nil, nil, err
	}
	if err := bus.EnsureStream(ctx, run); err != nil {
		err = errors.Join(err, bus.Close())
		server.Shutdown()
		return nil, nil, err
	}
	return server, bus, nil
}

// ApplyStreamLimit gives the run's stream the limit of --bus-stream-mib. Without
// the flag it changes nothing. A run that stopped because its stream was full
// continues after it.
func (f *Flags) ApplyStreamLimit(ctx context.Context, bus events.Bus, run string) error {
	nats, ok := bus.(*natsbus.Bus)
	if !ok || f.StreamMiB == 0 {
		return nil
	}
	return nats.EnsureStream(ctx, run)
}
