package sandboxfusion

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
)

// client does jobs on a SandboxFusion server, each in a request of its own: it
// sends code and receives standard output and files.
//
// A request holds one program and its calls, or one test script, or the text of
// suites. It never holds an expectation, so there is none to steal. The values come
// back on standard output, which every such server returns. A program that forges
// them only chooses its return values, as every program does; they are compared
// in this process.
//
// The server isolates programs from its machine and from each other.
// SandboxFusion's default is no isolation: a program there can look for the
// programs that run beside it and for their output.
type client struct {
	config  sandbox.Config
	address string // of POST /run_code
	name    string // the address without a password
	token   string // that the server asks for; empty: none
	http    *http.Client
	pace    pace
}

// levelElsewhere is the level of a pool that runs its programs on a server.
const levelElsewhere sandbox.Level = "remote"

const (
	requestsAtATime  = 16               // to one server
	startSlack       = 10 * time.Second // for the start of Python, the harness and its children on a busy server
	maxResponseBytes = 64 << 20
	// mostAccused is how often a job may fail on a server that does a harmless job
	// before each time and after. Then its program has failed, not the server.
	mostAccused = 3
)

// pace is how long the client waits for a server.
type pace struct {
	pause    time.Duration // before the second try; it doubles with each try
	longest  time.Duration // limit of a pause
	patience time.Duration // limit of all waiting for a busy server
	queue    time.Duration // a request may wait in the server, in addition to its running time
}

var defaultPace = pace{pause: 200 * time.Millisecond, longest: 10 * time.Second, patience: 5 * time.Minute, queue: time.Minute}

// Open opens the sandbox that the flags name: a server, or this machine. The
// caller closes the pool.
func Open(ctx context.Context, flags *sandbox.Flags, logger *slog.Logger) (*sandbox.Pool, error) {
	if flags.Sandbox == "" {
		return sandbox.Open(ctx, flags.Config(logger))
	}
	token, err := readToken(flags.SandboxTokenFile)
	if err != nil {
		return nil, err
	}
	return openServer(ctx, flags.Sandbox, token, flags.Config(logger), defaultPace)
}

// openServer opens a pool that runs its jobs on a server and checks the Python there.
// The server asks for the token; empty: for none.
func openServer(ctx context.Context, server, token string, config sandbox.Config, pace pace) (*sandbox.Pool, error) {
	config.Workers = cmp.Or(config.Workers, requestsAtATime)
	config, err := config.Complete()
	if err != nil {
		return nil, err
	}
	address, err := runCodeAddress(server)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = config.Workers
	pool := sandbox.NewPool(config, &client{
		config: config, address: address.String(), name: address.Redacted(), token: token, http: &http.Client{Transport: transport}, pace: pace,
	})
	if err := checkPython(ctx, pool); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return pool, nil
}

func runCodeAddress(server string) (*url.URL, error) {
	address, err := url.Parse(server)
	if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return nil, fmt.Errorf("sandbox server %q: want a URL such as http://127.0.0.1:8080", server)
	}
	if path.Base(address.Path) != "run_code" {
		address = address.JoinPath("run_code")
	}
	return address, nil
}

// checkPython runs a first program, which returns the version of its Python.
func checkPython(ctx context.Context, pool *sandbox.Pool) error {
	config := pool.Config()
	s, err := pool.Do(ctx, sandbox.Job{
		Kind: sandbox.JobCalls, Items: []string{"tuple(__import__('sys').version_info[:2])"},
		Each: max(config.CallTimeout, startSlack), Budget: max(config.JobTimeout, startSlack),
	})
	if err != nil {
		return err
	}
	var version [2]int
	if len(s.Replies) == 1 {
		value, _ := pool.Outcome(s.Replies[0]).Value.(literal.Tuple)
		for i := range min(len(value), 2) {
			if n, ok := value[i].(*literal.Int); ok {
				version[i], err = strconv.Atoi(literal.Text(n))
			}
		}
	}
	if err != nil || !sandbox.SupportsPython(version) {
		return fmt.Errorf("%w: the server %s has Python %d.%d, not 3.%d or newer %s",
			sandbox.ErrNoPython, pool.Describe().Python, version[0], version[1], sandbox.OldestPythonMinor, s.LoadError)
	}
	return nil
}

// Describe implements sandbox.Backend.
func (c *client) Describe() sandbox.Description {
	return sandbox.Description{Python: c.name, Level: levelElsewhere, Isolation: "that of the server", Bounds: "those of the server"}
}

// Close implements sandbox.Backend.
func (c *client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Do implements sandbox.Backend.
func (c *client) Do(ctx context.Context, slot sandbox.Slot, j sandbox.Job) (sandbox.Session, error) {
	if j.Kind == sandbox.JobPrograms {
		return sandbox.Session{}, sandbox.ErrThisMachineOnly
	}
	var done sandbox.Session
	for {
		rest := j
		rest.Items = j.Items[len(done.Replies):]
		a, err := c.persist(ctx, slot.Closed, rest)
		if err != nil {
			return sandbox.Session{}, err
		}
		if len(done.Replies) == 0 {
			done.Loads, done.LoadError, done.LoadTook = a.Loads, a.LoadError, a.LoadTook
		}
		for _, r := range a.Replies {
			done.Add(&j, r)
		}
		j.Budget -= a.ran
		if !a.more || len(a.Replies) == 0 || j.Budget <= 0 {
			return done, nil
		}
	}
}

// Errors of a request, besides those of the connection.
var (
	// errNoEnd is a reply without all lines of a job: either the server lost some,
	// or the program prevented them.
	errNoEnd = errors.New("the output has no end")
	// errRefused is a request that this server never accepts.
	errRefused = errors.New("the server refuses the request")
)

// busyError is a server that accepts no more requests for now.
type busyError struct {
	status string
	after  time.Duration // the pause that the server asks for; 0: it does not say
}

func (e *busyError) Error() string { return "the server is busy: " + e.status }

// persist sends a job until there is an answer. It asks a busy server again until
// its patience ends, and a failing one as often as the pool retries. Then it blames
// the program if the server fails on nothing else.
func (c *client) persist(ctx context.Context, closed <-chan struct{}, j sandbox.Job) (serverAnswer, error) {
	began, pause := time.Now(), c.pace.pause
	accused := 0 // how often the server did a harmless job meanwhile
	for failures := 0; ; {
		a, err := c.ask(ctx, j)
		var busy *busyError
		switch {
		case err == nil:
			return a, nil
		case ctx.Err() != nil:
			return a, ctx.Err()
		case errors.As(err, &busy) && time.Since(began) < c.pace.patience:
			pause = max(pause, busy.after)
		default:
			failures++
		}
		if failures > max(0, c.config.Retries) || errors.Is(err, errRefused) {
			var unreachable *net.OpError
			reached := !errors.As(err, &unreachable) || unreachable.Op != "dial"
			if reached && busy == nil && !errors.Is(err, errRefused) && c.works(ctx) {
				if accused++; accused < mostAccused {
					continue
				}
				a.Blame(&j)
				a.more = false
				return a, nil
			}
			return a, &sandbox.Error{Op: "run " + string(j.Kind) + " on " + c.name, Stderr: a.stderr, Err: fmt.Errorf("%d tries: %w", max(failures, 1), err)}
		}
		c.config.Logger.Warn("the sandbox server failed, trying again", "error", err)
		pause = min(pause, c.pace.longest)
		select {
		case <-ctx.Done():
			return a, ctx.Err()
		case <-closed:
			return a, sandbox.ErrClosed
		case <-time.After(pause):
			pause *= 2
		}
	}
}

// works reports whether the server does a harmless job.
func (c *client) works(ctx context.Context) bool {
	_, err := c.ask(ctx, sandbox.Job{Kind: sandbox.JobCalls, Items: []string{"0"}, Each: startSlack, Budget: startSlack, ValueBytes: c.config.ValueBytes})
	return err == nil
}

// ask makes one request.
func (c *client) ask(ctx context.Context, j sandbox.Job) (serverAnswer, error) {
	nonce := newNonce()
	body, err := json.Marshal(c.request(j, nonce))
	if err != nil {
		return serverAnswer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, j.Budget+startSlack+c.pace.queue)
	defer cancel()
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address, bytes.NewReader(body))
	if err != nil {
		return serverAnswer{}, err
	}
	post.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		post.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(post)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err // the address may hold a password; the error names the server anyway
		}
		return serverAnswer{}, err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes+1))
	switch {
	case err != nil:
		return serverAnswer{}, fmt.Errorf("read the reply: %w", err)
	case response.StatusCode == http.StatusTooManyRequests, response.StatusCode == http.StatusServiceUnavailable:
		return serverAnswer{}, &busyError{response.Status, retryAfter(response.Header)}
	case response.StatusCode >= 400 && response.StatusCode < 500 && response.StatusCode != http.StatusRequestTimeout:
		return serverAnswer{}, fmt.Errorf("%w: %s: %s", errRefused, response.Status, sandbox.Clip(string(text)))
	case response.StatusCode != http.StatusOK:
		return serverAnswer{}, fmt.Errorf("the server returned %s: %s", response.Status, sandbox.Clip(string(text)))
	case len(text) > maxResponseBytes:
		return serverAnswer{}, fmt.Errorf("%w within %d bytes", errNoEnd, maxResponseBytes)
	}
	return readServerAnswer(j, nonce, text)
}

// retryAfter reads the header in seconds, the form that busy servers send.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(strings.TrimSpace(header.Get("Retry-After")))
	if err != nil || seconds < 0 || seconds > int(time.Hour/time.Second) {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
