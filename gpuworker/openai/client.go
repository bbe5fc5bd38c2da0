package openai

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// client sends requests to one server.
type client struct {
	Options
	http *http.Client
	once bool // the first failure is returned

	mu     sync.Mutex
	until  time.Time // before which no request may be sent: the server asked for it
	failed time.Time // of the first failure since the last answer; zero: none
}

const (
	maxHeaderBytes = 64 << 10
	shownBytes     = 300 // of a refusal, in an error
	suspectTries   = 6
)

func newClient(o Options) (*client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxConnsPerHost, transport.MaxIdleConnsPerHost = o.Requests, o.Requests
	transport.MaxResponseHeaderBytes = maxHeaderBytes
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--server-ca-file: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--server-ca-file: %s has no certificate in PEM", o.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &client{Options: o, http: &http.Client{
		Transport: transport,
		// Another host would get the prompt, and the key on the same host another path.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// ask sends a request until its answer can be used. An outage of the server
// is waited for until ctx ends.
func (c *client) ask(ctx context.Context, q *question) error {
	body, err := json.Marshal(q.body)
	if err != nil {
		return err
	}
	for tries, suspects := 1, 0; ; tries++ {
		if err := c.pass(ctx); err != nil {
			return err
		}
		f := c.try(ctx, q, body)
		if f == nil {
			c.answered()
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if c.once && f.busy {
			return fmt.Errorf("%w: %w", ErrBusy, f.err)
		}
		if c.once {
			return f.err
		}
		if f.verdict == suspect {
			suspects++
		}
		if f.verdict == final || suspects == suspectTries {
			return f.err
		}
		pause := max(f.after, min(maxBackoff, c.Backoff<<min(tries-1, 20)))
		c.delayed(f, pause)
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// try sends a request once.
func (c *client) try(ctx context.Context, q *question, body []byte) *failure {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+q.path, bytes.NewReader(body))
	if err != nil {
		return &failure{err: err}
	}
	key, err := c.key()
	if err != nil {
		return &failure{err: err, verdict: outage} // the user can correct the file
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "codea1")
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		f := &failure{err: err, verdict: outage}
		if errors.Is(err, context.DeadlineExceeded) {
			f.verdict, f.err = suspect, fmt.Errorf("%w (--server-timeout %v)", err, c.Timeout)
		}
		return f
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		begin, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10)) // the status says enough
		return statusFailure(answer, shown(begin, key), time.Now())
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, q.limit+1))
	switch {
	case err != nil:
		return &failure{err: fmt.Errorf("%w: its answer ends early: %w", ErrProtocol, err), verdict: suspect}
	case int64(len(text)) > q.limit:
		return &failure{err: fmt.Errorf("%w: it has more than %d bytes", ErrProtocol, q.limit), verdict: suspect}
	}
	if err := q.use(text); err != nil {
		return &failure{err: fmt.Errorf("%w: %w; it begins with %s", ErrProtocol, err, shown(text, key)), verdict: suspect}
	}
	return nil
}

// shown returns the begin of an answer for an error, without the key and without
// control characters.
func shown(text []byte, key string) string {
	s := string(text)
	if key != "" {
		s = strings.ReplaceAll(s, key, "***")
	}
	return fmt.Sprintf("%.*q", shownBytes, s)
}

// pass waits until the time before which the server wants no request.
func (c *client) pass(ctx context.Context) error {
	for {
		c.mu.Lock()
		rest := time.Until(c.until)
		c.mu.Unlock()
		if rest <= 0 {
			return ctx.Err()
		}
		if err := sleep(ctx, rest); err != nil {
			return err
		}
	}
}

// delayed notes a failure after which the request is repeated, and logs the first one.
func (c *client) delayed(f *failure, pause time.Duration) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if until := now.Add(f.after); f.after > 0 && until.After(c.until) {
		c.until = until
	}
	if c.failed.IsZero() {
		c.failed = now
		c.Logger.Warn("the model server does not answer as it should, the request is repeated", "server", c.URL, "model", c.Model, "after", pause, "error", f.err)
	}
}

// answered logs the end of an outage.
func (c *client) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.failed.IsZero() {
		c.Logger.Warn("the model server answers again", "server", c.URL, "after", time.Since(c.failed).Round(time.Millisecond))
		c.failed = time.Time{}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
