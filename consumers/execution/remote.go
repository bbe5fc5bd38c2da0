package execution

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"codea1/consumers/execution/literal"
)

// remote does jobs on a SandboxFusion server, each in a request of its own:
// code in, standard output and files out.
//
// A request carries one program and its calls, or one test script, or the text
// of suites, and never an expectation: there is nothing to steal there. The
// answers come on standard output, which every such server returns. That is
// acceptable here, and would not be where expectations are compared in the
// program's process: whoever forges the lines of an answer chooses what the
// calls return, as a program does anyway. Each is compared here, as always.
//
// How well programs are kept from the machine and from each other is the
// server's own affair. SandboxFusion's default is not at all: a program there
// can look for those that run beside it, and for their answers.
type remote struct {
	pool    *Pool
	address string // of POST /run_code
	client  *http.Client
	pace    pace
}

// levelElsewhere is the level of a pool whose programs run on a server.
const levelElsewhere Level = "remote"

const (
	requestsAtATime  = 16               // to one server
	startSlack       = 10 * time.Second // for Python, the harness and its children to start on a busy server
	maxResponseBytes = 64 << 20
)

// pace says how long a server is waited for.
type pace struct {
	pause    time.Duration // before the second try; it doubles with each
	longest  time.Duration // a pause
	patience time.Duration // with a server that is full
	queue    time.Duration // of a request in the server, on top of the time it may run
}

var defaultPace = pace{pause: 200 * time.Millisecond, longest: 10 * time.Second, patience: 5 * time.Minute, queue: time.Minute}

// openRemote opens a pool of a server and asks it for its Python.
func openRemote(ctx context.Context, config Config, pace pace) (*Pool, error) {
	address, err := runCodeAddress(config.Server)
	if err != nil {
		return nil, err
	}
	p := &Pool{
		config: config, python: interpreter{Executable: address.Redacted()}, level: levelElsewhere, cache: newCache(config.CacheBytes),
		slots: make(chan *slot, config.Workers), closed: make(chan struct{}),
	}
	for range config.Workers {
		p.slots <- new(slot) // a slot is a request that may be made
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = config.Workers
	p.backend = &remote{pool: p, address: address.String(), client: &http.Client{Transport: transport}, pace: pace}
	if err := p.askServer(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
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

// askServer runs a first program.
func (p *Pool) askServer(ctx context.Context) error {
	s, err := p.run(ctx, job{
		kind: jobCalls, items: []string{"tuple(__import__('sys').version_info[:2])"},
		each: max(p.config.CallTimeout, startSlack), budget: max(p.config.JobTimeout, startSlack),
	})
	if err != nil {
		return err
	}
	if len(s.replies) == 1 {
		value, _ := p.outcome(s.replies[0]).Value.(literal.Tuple)
		for i := range min(len(value), 2) {
			if n, ok := value[i].(*literal.Int); ok {
				p.python.Version[i], err = strconv.Atoi(literal.Text(n))
			}
		}
	}
	if err != nil || !p.python.isRecent() {
		v := p.python.Version
		return fmt.Errorf("%w: the server %s has Python %d.%d, not 3.%d or newer %s", ErrNoPython, p.python.Executable, v[0], v[1], oldestMinor, s.loadError)
	}
	return nil
}

func (r *remote) close() error {
	r.client.CloseIdleConnections()
	return nil
}

// errRelay refuses what only a sandbox on this machine does.
var errRelay = errors.New("whole programs run, and are kept in, on this machine only, not by way of a sandbox server")

func (r *remote) run(ctx context.Context, j job) (session, error) {
	if j.kind == jobPrograms {
		return session{}, errRelay
	}
	select {
	case <-r.pool.closed:
		return session{}, ErrClosed
	default:
	}
	select {
	case <-ctx.Done():
		return session{}, ctx.Err()
	case <-r.pool.closed:
		return session{}, ErrClosed
	case s := <-r.pool.slots:
		defer func() { r.pool.slots <- s }()
	}
	var done session
	for {
		rest := j
		rest.items = j.items[len(done.replies):]
		a, err := r.persist(ctx, rest)
		if err != nil {
			return session{}, err
		}
		if len(done.replies) == 0 {
			done.loads, done.loadError = a.loads, a.loadError
		}
		for _, r := range a.replies {
			done.add(&j, r)
		}
		j.budget -= a.ran
		if !a.more || len(a.replies) == 0 || j.budget <= 0 {
			return done, nil
		}
	}
}

// Ways in which a request comes to nothing, besides a connection's own errors.
var (
	// errNoEnd is a reply without all of a job's lines. Either the server lost
	// some, or the program kept them from being written.
	errNoEnd = errors.New("the answer has no end")
	// errRefused is a request that this server will never take.
	errRefused = errors.New("the server refuses the request")
)

// busyError is a server that has no place at the moment.
type busyError struct {
	status string
	after  time.Duration // as it asks; 0: it does not say
}

func (e *busyError) Error() string { return "the server is busy: " + e.status }

// persist asks until there is an answer. A server that is full is asked again
// for as long as patience lasts; one that fails, as often as the pool retries.
func (r *remote) persist(ctx context.Context, j job) (serverAnswer, error) {
	began, pause := time.Now(), r.pace.pause
	for failures := 0; ; {
		a, err := r.ask(ctx, j)
		var busy *busyError
		switch {
		case err == nil:
			return a, nil
		case ctx.Err() != nil:
			return a, ctx.Err()
		case errors.As(err, &busy) && time.Since(began) < r.pace.patience:
			pause = max(pause, busy.after)
		default:
			failures++
		}
		if failures > r.pool.config.Retries || errors.Is(err, errRefused) {
			if errors.Is(err, errNoEnd) && r.blames(ctx) {
				return a.takenAway(j), nil
			}
			return a, &SandboxError{Op: "run " + string(j.kind) + " on " + r.pool.python.Executable, Stderr: a.stderr, Err: fmt.Errorf("%d tries: %w", max(failures, 1), err)}
		}
		r.pool.config.Logger.Warn("the sandbox server failed, trying again", "error", err)
		pause = min(pause, r.pace.longest)
		select {
		case <-ctx.Done():
			return a, ctx.Err()
		case <-r.pool.closed:
			return a, ErrClosed
		case <-time.After(pause):
			pause *= 2
		}
	}
}

// blames reports whether answers that have no end are the program's doing: an
// empty program gets an answer with one.
func (r *remote) blames(ctx context.Context) bool {
	_, err := r.ask(ctx, job{kind: jobCalls, items: []string{"0"}, each: startSlack, budget: startSlack, valueBytes: r.pool.config.ValueBytes})
	return err == nil
}

// ask makes one request.
func (r *remote) ask(ctx context.Context, j job) (serverAnswer, error) {
	nonce := newNonce()
	body, err := json.Marshal(r.request(j, nonce))
	if err != nil {
		return serverAnswer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, j.budget+startSlack+r.pace.queue)
	defer cancel()
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, r.address, bytes.NewReader(body))
	if err != nil {
		return serverAnswer{}, err
	}
	post.Header.Set("Content-Type", "application/json")
	response, err := r.client.Do(post)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err // the address may hold a password, and stands in the error anyway
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
		return serverAnswer{}, fmt.Errorf("%w: %s: %s", errRefused, response.Status, clip(string(text)))
	case response.StatusCode != http.StatusOK:
		return serverAnswer{}, fmt.Errorf("the server answers %s: %s", response.Status, clip(string(text)))
	case len(text) > maxResponseBytes:
		return serverAnswer{}, fmt.Errorf("%w within %d bytes", errNoEnd, maxResponseBytes)
	}
	return readServerAnswer(j, nonce, text)
}

// retryAfter reads the header in seconds, the form that servers under load send.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(strings.TrimSpace(header.Get("Retry-After")))
	if err != nil || seconds < 0 || seconds > int(time.Hour/time.Second) {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
