package kafkabus

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"codea1/events"
)

// Config says how to reach a cluster, and the properties of new topics. The
// zero value means a broker on this machine at the default port.
type Config struct {
	// Brokers are the addresses for the first contact; default 127.0.0.1:9092.
	Brokers []string
	// Name is the client ID in the logs of the brokers.
	Name string

	// Mechanism is the SASL mechanism for User and Password: MechanismPlain,
	// MechanismSCRAM256 or MechanismSCRAM512. Empty means no authentication.
	Mechanism string
	User      string
	Password  string

	// TLS encrypts the connection. CAFile (for certificates that no system root
	// has signed) and CertFile with KeyFile (for brokers that want a client
	// certificate) do so too. All are PEM files.
	TLS      bool
	CAFile   string
	CertFile string
	KeyFile  string

	// ConnectTimeout bounds the first contact; default 10 s.
	ConnectTimeout time.Duration
	// Wait makes Connect wait for brokers that cannot be reached yet, however
	// long it takes.
	Wait bool

	// Partitions of a new payload topic; default 4. An existing topic keeps its
	// number.
	Partitions int
	// Replicas of a new topic; default 1. With 3 or more, two brokers must
	// store a record before it counts.
	Replicas int

	// CommitInterval is the time between two commits of offsets for other
	// tools; default 5 s. It needs permission to read the groups codea1.*.
	// Without it tools see no lag, and nothing else changes.
	CommitInterval time.Duration

	// Logger gets outages and malformed records; default none.
	Logger *slog.Logger
}

// SASL mechanisms.
const (
	MechanismPlain    = "PLAIN"
	MechanismSCRAM256 = "SCRAM-SHA-256"
	MechanismSCRAM512 = "SCRAM-SHA-512"
)

const (
	defaultBroker         = "127.0.0.1:9092"
	defaultConnectTimeout = 10 * time.Second
	defaultPartitions     = 4
	defaultCommitInterval = 5 * time.Second
	maxPartitions         = 1024

	// maxHeaderBytes bounds the envelope: ten headers, each under
	// events.MaxTokenBytes, with their names.
	maxHeaderBytes = 64 << 10
	// maxRecordBytes is the largest record batch of a topic: one payload of
	// maximal size with its headers.
	maxRecordBytes = events.MaxPayloadBytes + maxHeaderBytes
)

func (c Config) withDefaults() Config {
	if len(c.Brokers) == 0 {
		c.Brokers = []string{defaultBroker}
	}
	if c.Name == "" {
		c.Name = "codea1"
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = defaultConnectTimeout
	}
	if c.Partitions == 0 {
		c.Partitions = defaultPartitions
	}
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.CommitInterval == 0 {
		c.CommitInterval = defaultCommitInterval
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	switch {
	case (c.Mechanism == "") != (c.User == ""):
		return errors.New("kafka: set a user and a mechanism, or neither")
	case c.User == "" && c.Password != "":
		return errors.New("kafka: a password needs a user")
	case (c.CertFile == "") != (c.KeyFile == ""):
		return errors.New("kafka: set a TLS certificate and its key, or neither")
	case c.ConnectTimeout < 0:
		return fmt.Errorf("kafka: connect timeout %v is negative", c.ConnectTimeout)
	case c.CommitInterval < 0:
		return fmt.Errorf("kafka: commit interval %v is negative", c.CommitInterval)
	case c.Partitions < 1 || c.Partitions > maxPartitions:
		return fmt.Errorf("kafka: %d partitions, want 1 to %d", c.Partitions, maxPartitions)
	case c.Replicas < 1 || c.Replicas > 5:
		return fmt.Errorf("kafka: %d replicas, want 1 to 5", c.Replicas)
	}
	return nil
}

func (c Config) transport() (*kafka.Transport, error) {
	t := &kafka.Transport{ClientID: c.Name, DialTimeout: c.ConnectTimeout, MetadataTTL: metadataTTL}
	var err error
	if t.SASL, err = c.sasl(); err != nil {
		return nil, err
	}
	if t.TLS, err = c.tls(); err != nil {
		return nil, err
	}
	return t, nil
}

func (c Config) sasl() (sasl.Mechanism, error) {
	switch c.Mechanism {
	case "":
		return nil, nil
	case MechanismPlain:
		return plain.Mechanism{Username: c.User, Password: c.Password}, nil
	case MechanismSCRAM256:
		return scram.Mechanism(scram.SHA256, c.User, c.Password)
	case MechanismSCRAM512:
		return scram.Mechanism(scram.SHA512, c.User, c.Password)
	}
	return nil, fmt.Errorf("kafka: unknown mechanism %q; use %s, %s or %s", c.Mechanism, MechanismPlain, MechanismSCRAM256, MechanismSCRAM512)
}

func (c Config) tls() (*tls.Config, error) {
	if !c.TLS && c.CAFile == "" && c.CertFile == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("kafka: CA file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("kafka: CA file %s has no certificate", c.CAFile)
		}
	}
	if c.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("kafka: certificate %s with key %s: %w", c.CertFile, c.KeyFile, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
