package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"codea1/events"
	"codea1/events/kafkabus"
	"codea1/events/natsbus"
)

const (
	busEmbedded = "embedded"
	kafkaScheme = "kafka://"

	natsSyncInterval = 10 * time.Second
)

// BusFlags say which message bus a process joins and how. Secrets are given by
// file: a command line can be read by everyone on the machine, and the
// configuration of a run is part of its events.
type BusFlags struct {
	URL          string `name:"bus" help:"Message bus: embedded, the nats:// addresses of servers with JetStream, or kafka://HOST:PORT[,HOST:PORT]." default:"embedded"`
	Replicas     int    `name:"bus-replicas" help:"Copies that the bus keeps of a new run's events: 1, or 3 on a cluster." default:"1"`
	Partitions   int    `name:"bus-partitions" help:"Partitions of a topic that Kafka does not have yet; NATS has none." default:"4"`
	StreamMiB    int64  `name:"bus-stream-mib" help:"Most that the events of a run may take on NATS, in MiB; 0 for 32768, or less where the server has less to set aside." default:"0"`
	User         string `name:"bus-user" help:"User to log in to the bus with." placeholder:"NAME"`
	PasswordFile string `name:"bus-password-file" help:"File that holds the user's password." placeholder:"FILE"`
	SASL         string `name:"bus-sasl" help:"How Kafka is shown user and password: plain, scram-sha-256 or scram-sha-512." default:"scram-sha-512" enum:"plain,scram-sha-256,scram-sha-512"`
	TokenFile    string `name:"bus-token-file" help:"File that holds a token to log in to NATS with." placeholder:"FILE"`
	NKeyFile     string `name:"bus-nkey-file" help:"File that holds the seed of an nkey to log in to NATS with." placeholder:"FILE"`
	CredsFile    string `name:"bus-creds-file" help:"Credentials file, as nsc writes it, to log in to NATS with." placeholder:"FILE"`
	TLS          bool   `name:"bus-tls" help:"Encrypt the connection to Kafka; for NATS the address says so (tls://)."`
	CAFile       string `name:"bus-ca-file" help:"PEM file of the authorities that sign the bus's certificates, where the system does not know them." placeholder:"FILE"`
	CertFile     string `name:"bus-cert-file" help:"PEM file of the certificate to show to the bus." placeholder:"FILE"`
	KeyFile      string `name:"bus-key-file" help:"PEM file of that certificate's key." placeholder:"FILE"`
}

// public returns the address without a user and password that may stand in it.
func (f *BusFlags) public() string { return natsbus.PublicURL(f.URL) }

// natsSchemes are the ways to reach servers of NATS.
var natsSchemes = []string{"nats", "tls", "ws", "wss"}

// checkAddress refuses at once what cannot be the address of a bus. It repeats
// none that may hold a password.
func (f *BusFlags) checkAddress() error {
	if brokers, ok := strings.CutPrefix(f.URL, kafkaScheme); ok {
		for _, broker := range strings.Split(brokers, ",") {
			if strings.Contains(broker, "@") {
				return errors.New("--bus: a user of Kafka is given by --bus-user and --bus-password-file, not in the address")
			}
			if host, port, err := net.SplitHostPort(broker); err != nil || host == "" || port == "" {
				return fmt.Errorf("--bus: %q is no address of a broker; want kafka://HOST:PORT[,HOST:PORT]", broker)
			}
		}
		return nil
	}
	for _, server := range strings.Split(f.public(), ",") {
		if scheme, host, _ := strings.Cut(server, "://"); !slices.Contains(natsSchemes, scheme) || host == "" {
			return fmt.Errorf("--bus: %q is no address of a bus; want nats://HOST:PORT, also tls:// or ws://, or kafka://HOST:PORT", server)
		}
	}
	return nil
}

// connect joins a bus that runs elsewhere. name is what its servers call this
// process.
func (f *BusFlags) connect(ctx context.Context, name string, logger *slog.Logger) (events.Broker, error) {
	if err := f.checkAddress(); err != nil {
		return nil, err
	}
	password, err := secret("--bus-password-file", f.PasswordFile)
	if err != nil {
		return nil, err
	}
	if brokers, ok := strings.CutPrefix(f.URL, kafkaScheme); ok {
		config := kafkabus.Config{
			Brokers: strings.Split(brokers, ","), Name: name, User: f.User, Password: password,
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
	token, err := secret("--bus-token-file", f.TokenFile)
	if err != nil {
		return nil, err
	}
	bus, err := natsbus.Connect(ctx, natsbus.Config{
		URL: f.URL, Name: name, User: f.User, Password: password, Token: token, NKeyFile: f.NKeyFile, CredsFile: f.CredsFile,
		CAFile: f.CAFile, CertFile: f.CertFile, KeyFile: f.KeyFile, Replicas: f.Replicas, MaxStreamBytes: f.StreamMiB << 20, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	return bus, nil
}

// limit gives the events of a run the room that the flags say, if they do: a run
// that has none left goes on after it.
func (f *BusFlags) limit(ctx context.Context, bus events.Bus, run string) error {
	nats, ok := bus.(*natsbus.Bus)
	if !ok || f.StreamMiB == 0 {
		return nil
	}
	return nats.EnsureStream(ctx, run)
}

// secret reads a file that holds one secret; empty for no file.
func secret(flag, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("%s: %s is empty", flag, path)
	}
	return secret, nil
}

// embed starts the NATS server of a run in its directory and joins it.
func (f *BusFlags) embed(ctx context.Context, run, dir string, port int, logger *slog.Logger) (*natsbus.Server, events.Broker, error) {
	server, err := natsbus.StartServer(natsbus.ServerConfig{
		StoreDir: natsPath(dir), Port: port, Logger: logger.With("part", "nats"),
		// A process that dies loses nothing. A machine that loses power may
		// lose the bus's last seconds, which the log has synced: the run
		// then says that its position is past the end of the stream.
		SyncInterval: natsSyncInterval,
	})
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
