package connect

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"codea1/events/natsbus"
)

const (
	// Embedded is the URL of a NATS server inside the process.
	Embedded = "embedded"
	// KafkaScheme begins the URL of Kafka brokers.
	KafkaScheme = "kafka://"
)

// EmbeddedLogin says in an error how to log in to the embedded server of a run.
const EmbeddedLogin = "the embedded server of a run wants --bus-user " + natsbus.PipelineUser +
	" and --bus-password-file nats/" + natsbus.PipelineUser + ".password of the run directory"

// natsSchemes are the schemes of NATS URLs.
var natsSchemes = []string{"nats", "tls", "ws", "wss"}

// Flags are the flags of a message bus. Secrets are read from files: every user
// of a machine can read a command line, and the configuration of a run is part
// of its events.
type Flags struct {
	URL          string `name:"bus" yaml:"bus" help:"Message bus: embedded, nats://HOST:PORT[,...] for NATS servers with JetStream, or kafka://HOST:PORT[,HOST:PORT]." default:"embedded" change:"resume"`
	Replicas     int    `name:"bus-replicas" yaml:"bus-replicas" help:"Copies of the events of a new run: 1, or 3 on a cluster." default:"1" min:"1" max:"5" change:"resume"`
	Partitions   int    `name:"bus-partitions" yaml:"bus-partitions" help:"Partitions of a new Kafka topic. NATS has no partitions." default:"4" min:"1" max:"1024" change:"resume"`
	StreamMiB    int64  `name:"bus-stream-mib" yaml:"bus-stream-mib" help:"Limit for the events of a run on NATS, in MiB. 0: 32768, or the space that the server has if that is less." default:"0" min:"0" max:"1073741824" change:"resume"`
	User         string `name:"bus-user" yaml:"bus-user" help:"User of the bus login." placeholder:"NAME" change:"resume"`
	PasswordFile string `name:"bus-password-file" yaml:"bus-password-file" help:"File with the password of the user." placeholder:"FILE" change:"resume"`
	SASL         string `name:"bus-sasl" yaml:"bus-sasl" help:"SASL mechanism of the Kafka login: plain, scram-sha-256 or scram-sha-512." default:"scram-sha-512" enum:"plain,scram-sha-256,scram-sha-512" change:"resume"`
	TokenFile    string `name:"bus-token-file" yaml:"bus-token-file" help:"File with the token of a NATS login." placeholder:"FILE" change:"resume"`
	NKeyFile     string `name:"bus-nkey-file" yaml:"bus-nkey-file" help:"File with the nkey seed of a NATS login." placeholder:"FILE" change:"resume"`
	CredsFile    string `name:"bus-creds-file" yaml:"bus-creds-file" help:"Credentials file of a NATS login, as nsc writes it." placeholder:"FILE" change:"resume"`
	APIPrefix    string `name:"bus-api-prefix" yaml:"bus-api-prefix" help:"Name of the JetStream API in the account of a NATS login. Default: $JS.API." placeholder:"SUBJECT" change:"resume"`
	TLS          bool   `name:"bus-tls" yaml:"bus-tls" help:"Encrypt the connection to Kafka. For NATS use a tls:// address." change:"resume"`
	CAFile       string `name:"bus-ca-file" yaml:"bus-ca-file" help:"PEM file of the certificate authorities of the bus. Default: those of the system." placeholder:"FILE" change:"resume"`
	CertFile     string `name:"bus-cert-file" yaml:"bus-cert-file" help:"PEM file of the client certificate." placeholder:"FILE" change:"resume"`
	KeyFile      string `name:"bus-key-file" yaml:"bus-key-file" help:"PEM file of the client certificate's key." placeholder:"FILE" change:"resume"`
}

// PublicURL returns a URL without the user and the password in it.
func PublicURL(url string) string { return natsbus.PublicURL(url) }

// ValidateURL refuses a URL that no bus has. The error repeats no part of the
// URL that may be a password.
func (f *Flags) ValidateURL() error {
	if brokers, ok := strings.CutPrefix(f.URL, KafkaScheme); ok {
		for _, broker := range strings.Split(brokers, ",") {
			if strings.Contains(broker, "@") {
				return errors.New("--bus: a Kafka address has no user; use --bus-user and --bus-password-file")
			}
			if host, port, err := net.SplitHostPort(broker); err != nil || host == "" || port == "" {
				return fmt.Errorf("--bus: %q is not the address of a broker; want kafka://HOST:PORT[,HOST:PORT]", broker)
			}
		}
		return nil
	}
	for _, server := range strings.Split(PublicURL(f.URL), ",") {
		if scheme, host, _ := strings.Cut(server, "://"); !slices.Contains(natsSchemes, scheme) || host == "" {
			return fmt.Errorf("--bus: %q is not the address of a bus; want nats://HOST:PORT, also tls:// or ws://, or kafka://HOST:PORT", server)
		}
	}
	return nil
}

// readSecret reads a file that holds one secret. An empty path gives an empty
// secret.
func readSecret(flag, path string) (string, error) {
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
