package natsbus

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
)

// Config says how to reach a server, and bounds a run's stream. The zero value
// means a server on this machine at the default port.
type Config struct {
	// URL is one address or a comma-separated list; default
	// nats://127.0.0.1:4222.
	URL string
	// Server is an embedded server to connect to without a socket, as
	// PipelineUser. URL and logins are ignored then.
	Server *Server
	// Name is the name of this connection in the server's monitoring.
	Name string

	// At most one of these logins.
	CredsFile string // JWT and seed, as nsc writes them
	NKeyFile  string // seed of an nkey
	Token     string
	User      string
	Password  string

	// APIPrefix is the name of the JetStream API in the account of the login, if
	// the account imports the API under a name of its own. Default $JS.API.
	APIPrefix string

	// CAFile is for a server certificate that no system root has signed;
	// CertFile and KeyFile are for a server that wants a client certificate.
	// PEM files.
	CAFile   string
	CertFile string
	KeyFile  string

	// ConnectTimeout bounds one try to connect; default 10 s.
	ConnectTimeout time.Duration
	// Wait makes Connect wait for a server that cannot be reached yet.
	Wait bool

	// MaxStreamBytes and MaxStreamMessages bound a run's stream. A full stream
	// refuses new events and deletes none. Default 16 million messages and 32
	// GiB. A server reserves the bytes; if it has less, the default is halved
	// until it fits, down to 1 GiB.
	MaxStreamBytes    int64
	MaxStreamMessages int64
	// Replicas of a new run's stream; default 1. An embedded server has one.
	Replicas int

	// Logger gets outages and malformed messages; default none.
	Logger *slog.Logger
}

const (
	defaultConnectTimeout    = 10 * time.Second
	defaultMaxStreamBytes    = 32 << 30
	minStreamBytes           = 1 << 30
	defaultMaxStreamMessages = 16 << 20

	// A network that loses all packets resets no connection, and TCP repeats a
	// packet for 15 minutes. Therefore a connection also ends when nothing that was
	// sent is acknowledged for silentTimeout; a ping is sent every pingInterval.
	// The limit for unanswered pings is higher, 80 s: on a slow link an answer
	// waits behind large messages.
	pingInterval  = 5 * time.Second
	maxPings      = 15
	silentTimeout = 10 * time.Second

	// maxHeaderBytes bounds the envelope: ten headers, each under
	// events.MaxTokenBytes, with their names.
	maxHeaderBytes = 64 << 10
	// maxMessageBytes bounds a message of a stream, with headers.
	maxMessageBytes = events.MaxPayloadBytes + maxHeaderBytes
)

func (c Config) withDefaults() Config {
	if c.URL == "" {
		c.URL = nats.DefaultURL
	}
	if c.Name == "" {
		c.Name = "codea1"
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = defaultConnectTimeout
	}
	if c.MaxStreamMessages == 0 {
		c.MaxStreamMessages = defaultMaxStreamMessages
	}
	if c.APIPrefix == "" {
		c.APIPrefix = jetstream.DefaultAPIPrefix
	}
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	ways := 0
	for _, set := range []bool{c.CredsFile != "", c.NKeyFile != "", c.Token != "", c.User != ""} {
		if set {
			ways++
		}
	}
	switch {
	case ways > 1:
		return errors.New("nats: set at most one of creds file, nkey file, token and user")
	case c.User == "" && c.Password != "":
		return errors.New("nats: a password needs a user")
	case (c.CertFile == "") != (c.KeyFile == ""):
		return errors.New("nats: set a TLS certificate and its key, or neither")
	case strings.ContainsAny(c.APIPrefix, " \t\r\n*>") || strings.HasPrefix(c.APIPrefix, ".") || strings.Contains(c.APIPrefix, ".."):
		return fmt.Errorf("nats: API prefix %q is not the beginning of a subject", c.APIPrefix)
	case c.ConnectTimeout < 0:
		return fmt.Errorf("nats: connect timeout %v is negative", c.ConnectTimeout)
	case c.MaxStreamBytes != 0 && c.MaxStreamBytes < maxMessageBytes:
		return fmt.Errorf("nats: a stream of %d bytes cannot hold one message of %d", c.MaxStreamBytes, maxMessageBytes)
	case c.MaxStreamMessages < 1:
		return fmt.Errorf("nats: a stream of %d messages cannot hold one", c.MaxStreamMessages)
	case c.Replicas < 1 || c.Replicas > 5:
		return fmt.Errorf("nats: %d replicas, want 1 to 5", c.Replicas)
	}
	return nil
}

func (c Config) options() ([]nats.Option, error) {
	opts := []nats.Option{
		nats.Name(c.Name),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(),
		// Without a buffer a publish during an outage fails at once. With one
		// it could be sent later, after its own retry.
		nats.ReconnectBufSize(-1),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.Timeout(c.ConnectTimeout),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(maxPings),
		nats.SetCustomDialer(&net.Dialer{Timeout: c.ConnectTimeout, Control: endSilent}),
	}
	if c.Server != nil {
		opts = append(opts, nats.InProcessServer(c.Server.server))
	}
	switch {
	case c.Server != nil:
		opts = append(opts, nats.UserInfo(PipelineUser, c.Server.gate.passwords[PipelineUser]))
	case c.CredsFile != "":
		opts = append(opts, nats.UserCredentials(c.CredsFile))
	case c.NKeyFile != "":
		o, err := nats.NkeyOptionFromSeed(c.NKeyFile)
		if err != nil {
			return nil, fmt.Errorf("nats: nkey file %s: %w", c.NKeyFile, err)
		}
		opts = append(opts, o)
	case c.Token != "":
		opts = append(opts, nats.Token(c.Token))
	case c.User != "":
		opts = append(opts, nats.UserInfo(c.User, c.Password))
	}
	if c.CAFile != "" {
		opts = append(opts, nats.RootCAs(c.CAFile))
	}
	if c.CertFile != "" {
		opts = append(opts, nats.ClientCert(c.CertFile, c.KeyFile))
	}
	return opts, nil
}

// reconnectDelay doubles from 50 ms to 2 s.
func reconnectDelay(attempts int) time.Duration {
	return min(50*time.Millisecond<<min(max(attempts-1, 0), 6), 2*time.Second)
}

// PublicURL returns the addresses without users, passwords and tokens.
func PublicURL(urls string) string {
	addresses := strings.Split(urls, ",")
	for i, a := range addresses {
		scheme, rest, found := strings.Cut(a, "://")
		if !found {
			scheme, rest = "", a
		}
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			addresses[i] = strings.TrimPrefix(scheme+"://"+rest[at+1:], "://")
		}
	}
	return strings.Join(addresses, ",")
}
