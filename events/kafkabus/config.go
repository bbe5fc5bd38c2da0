package kafkabus

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"codea1/events"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// Config says how to reach a cluster and what new topics are like. The zero
// value is a broker on this machine's default port.
type Config struct {
	// Brokers are addresses to start from; 127.0.0.1:9092 by default.
	Brokers []string
	// Name is what brokers call this client in their logs.
	Name string

	// Mechanism is how User and Password are shown: MechanismPlain,
	// MechanismSCRAM256 or MechanismSCRAM512; empty for no authentication.
	Mechanism string
	User      string
	Password  string

	// TLS turns encryption on. CAFile, when the brokers' certificates are not
	// signed by a system root, and CertFile with KeyFile, when they ask for one
	// of ours, turn it on as well. PEM files.
	TLS      bool
	CAFile   string
	CertFile string
	KeyFile  string

	// ConnectTimeout bounds the first contact. 10 s by default.
	ConnectTimeout time.Duration

	// Partitions of a new payload topic; 4 by default. A topic that exists
	// keeps its own.
	Partitions int
	// Replicas of a new topic; 1 by default. With 3 or more, two brokers must
	// have stored a record before it counts.
	Replicas int

	// CommitInterval is the time between two looks at what sets of consumers have
	// finished, to commit it to the consumer groups that tools read; 5 s by
	// default. It wants permission to read the groups codea1.*; without it, tools
	// see no lag and nothing else is lost.
	CommitInterval time.Duration

	// Logger gets outages and records that are no events; none by default.
	Logger *slog.Logger
}

// The ways to authenticate, by their SASL names.
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

	// maxHeaderBytes is room for the envelope: ten headers, each under
	// events.MaxTokenBytes and its name.
	maxHeaderBytes = 64 << 10
	// maxRecordBytes is the largest record batch of a topic: one payload of the
	// largest size with its headers.
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
		return errors.New("kafka: a user and a mechanism come together")
	case c.User == "" && c.Password != "":
		return errors.New("kafka: a password needs a user")
	case (c.CertFile == "") != (c.KeyFile == ""):
		return errors.New("kafka: a TLS certificate and its key come together")
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
	return nil, fmt.Errorf("kafka: mechanism %q; use %s, %s or %s", c.Mechanism, MechanismPlain, MechanismSCRAM256, MechanismSCRAM512)
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
			return nil, fmt.Errorf("kafka: CA file %s holds no certificate", c.CAFile)
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
