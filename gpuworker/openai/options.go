package openai

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"time"
)

// Options are the options of a Sampler.
type Options struct {
	// URL is the address of the interface, for example http://127.0.0.1:8000/v1.
	URL string
	// Model is the name of the model on the server.
	Model string
	// KeyFile is a file with the API key that only its owner can read. It is read for
	// each request. Empty: no key.
	KeyFile string
	// CAFile is a PEM file of the certificate authorities of the server. Empty:
	// those of the system.
	CAFile string
	// Completions asks /completions with the text of the messages. Without it, the
	// messages go to /chat/completions, and the server applies the chat template.
	Completions bool
	// LogProbs asks for token ids and log-probs. A server without them is refused.
	LogProbs bool
	// Stop are texts that end a completion.
	Stop []string
	// Requests is the number of requests at the same time. Default 32.
	Requests int
	// Timeout bounds one request with its answer. Default 10 minutes.
	Timeout time.Duration
	// Backoff is the pause after the first failure of a request. It doubles with
	// each further one, up to 30 s. Default 1 s.
	Backoff time.Duration
	Logger  *slog.Logger // default: discard
}

const (
	defaultRequests = 32
	defaultTimeout  = 10 * time.Minute
	defaultBackoff  = time.Second
	maxBackoff      = 30 * time.Second
	maxKeyBytes     = 16 << 10
)

func (o Options) withDefaults() Options {
	o.URL = strings.TrimRight(o.URL, "/")
	o.Requests = cmp.Or(o.Requests, defaultRequests)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.Backoff = cmp.Or(o.Backoff, defaultBackoff)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o *Options) validate() error {
	if err := CheckURL(o.URL); err != nil {
		return err
	}
	if o.Model == "" {
		return errors.New("--model: name the model of the server")
	}
	_, err := o.key()
	return err
}

// IsURL reports whether a name is the address of a server.
func IsURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// CheckURL refuses an address that no server has, and one with a secret: the address is
// recorded with the run. The error repeats no part that may be a password.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || !IsURL(address) || u.Host == "":
		return errors.New("--server: want http://HOST:PORT/v1 or https://HOST/v1")
	case u.User != nil:
		return errors.New("--server: the address has a user or a password, which would be recorded; use --server-key-file")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("--server: the address has a query or a fragment; want http://HOST:PORT/v1")
	}
	return nil
}

// inClear reports whether requests leave this machine without encryption.
func (o *Options) inClear() bool {
	u, err := url.Parse(o.URL)
	if err != nil {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

// key returns the API key; empty without a file.
func (o *Options) key() (string, error) {
	if o.KeyFile == "" {
		return "", nil
	}
	file, err := os.Open(o.KeyFile)
	if err != nil {
		return "", fmt.Errorf("--server-key-file: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("--server-key-file: %w", err)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("--server-key-file: %s is no regular file", o.KeyFile)
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("--server-key-file: other users can use %s (mode %#o): chmod 600 it", o.KeyFile, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(file, maxKeyBytes))
	if err != nil {
		return "", fmt.Errorf("--server-key-file: %w", err)
	}
	key := strings.TrimSpace(string(text))
	if key == "" || len(text) == maxKeyBytes || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("--server-key-file: %s does not hold one key in one line", o.KeyFile)
	}
	return key, nil
}
