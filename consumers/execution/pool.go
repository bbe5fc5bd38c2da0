package execution

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Pool is a fixed number of Python fork servers. Its methods may be called
// from any number of goroutines; each job waits for a free fork server.
type Pool struct {
	config Config
	python interpreter
	level  Level
	cache  *cache
	// landlock is the version of Landlock at LevelConfined; 0: none.
	landlock int
	backend  backend
	bounds   bounds
	root     string     // private directory, the fork servers' work directories below it
	lock     *os.File   // of root
	slots    chan *slot // the free ones

	closing sync.Once
	closed  chan struct{}
}

// slot is a place for one fork server. Its zygote is nil while there is none.
type slot struct{ zygote *zygote }

// Open finds Python and starts the fork servers. The caller closes the pool.
// The error is ErrNoPython, ErrNotIsolated, about a field of config, or a
// *SandboxError.
func Open(ctx context.Context, config Config) (*Pool, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	if config.Server != "" {
		return openRemote(ctx, config, defaultPace)
	}
	return open(ctx, config, levels[:slices.Index(levels, config.Level)+1])
}

// open is Open at the first of the levels that this machine gives.
func open(ctx context.Context, config Config, levels []Level) (*Pool, error) {
	python, err := findPython(ctx, config.Python)
	if err != nil {
		return nil, err
	}
	root, lock, err := makeRoot()
	if err != nil {
		return nil, &SandboxError{Op: "make the work directory", Err: err}
	}
	p := &Pool{
		config: config, python: python, bounds: newBounds(config), root: root, lock: lock, cache: newCache(config.CacheBytes),
		slots: make(chan *slot, config.Workers), closed: make(chan struct{}),
	}
	p.backend = forkServers{p}
	first, err := p.startFirst(levels)
	if err != nil {
		return nil, errors.Join(err, removeAll(root), lock.Close())
	}
	p.landlock = first.landlock
	p.slots <- &slot{first}
	var starting errgroup.Group
	for range config.Workers - 1 {
		starting.Go(func() (err error) {
			s := new(slot)
			defer func() { p.slots <- s }()
			s.zygote, err = p.start()
			return err
		})
	}
	if err := starting.Wait(); err != nil {
		return nil, errors.Join(&SandboxError{Op: "open", Err: err}, p.Close())
	}
	return p, nil
}

// startFirst starts a fork server at the first level that this machine gives,
// which is the pool's from then on.
func (p *Pool) startFirst(levels []Level) (*zygote, error) {
	var reasons []string
	for _, level := range levels {
		p.level = level
		z, err := p.start()
		if err == nil {
			return z, nil
		}
		var refused *notGivenError
		if !errors.As(err, &refused) {
			return nil, &SandboxError{Op: "open", Err: err}
		}
		reasons = append(reasons, refused.Error())
	}
	return nil, fmt.Errorf("%w: %s; %s", ErrNotIsolated, strings.Join(reasons, "; "), levelRemedy)
}

// start starts a fork server in a work directory of its own: a candidate of an
// earlier one may have left its directory in any state.
func (p *Pool) start() (*zygote, error) {
	if err := os.MkdirAll(p.root, 0o700); err != nil {
		return nil, err
	}
	directory, err := os.MkdirTemp(p.root, "work-")
	if err != nil {
		return nil, err
	}
	return startZygote(p.python, directory, p.level, p.config, p.bounds)
}

// Python returns the path of the interpreter in use.
func (p *Pool) Python() string { return p.python.Executable }

// Level returns how candidates are isolated: at least as asked for.
func (p *Pool) Level() Level { return p.level }

// Isolation says what the level means on this machine, in words.
func (p *Pool) Isolation() string {
	if p.level == levelElsewhere {
		return "what the server does"
	}
	return p.level.describe(p.landlock)
}

// Bounds says what keeps a candidate's processes together within their memory
// on this machine, in words.
func (p *Pool) Bounds() string {
	if p.level == levelElsewhere {
		return "what the server holds to"
	}
	return p.bounds.String()
}

// Close ends the fork servers and waits for jobs that are still running, so
// cancel their contexts first to close at once. A second Close does nothing.
func (p *Pool) Close() error {
	var err error
	p.closing.Do(func() {
		close(p.closed)
		var stopping sync.WaitGroup
		for range cap(p.slots) {
			s := <-p.slots
			if s.zygote != nil {
				stopping.Go(s.zygote.stop)
			}
		}
		stopping.Wait()
		err = p.backend.close()
	})
	return err
}

// removeAll is os.RemoveAll for a tree whose directories may be locked: a
// candidate can end its fork server before that has tidied up.
func removeAll(root string) error {
	unlock := func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700) // what fails here fails again below
		}
		return nil
	}
	_ = filepath.WalkDir(root, unlock)
	return os.RemoveAll(root)
}

// with runs work on a fork server of its own, and again on a fresh one where
// the sandbox failed. work must not keep results of a try that returned an
// error.
func (p *Pool) with(ctx context.Context, op string, work func(*zygote) error) error {
	var failed *SandboxError
	for range p.config.Retries + 1 {
		err := p.once(ctx, op, work)
		if !errors.As(err, &failed) {
			return err
		}
		p.config.Logger.Warn("sandbox failed, trying in a fresh one", "error", err)
	}
	return fmt.Errorf("%d tries: %w", p.config.Retries+1, failed)
}

func (p *Pool) once(ctx context.Context, op string, work func(*zygote) error) error {
	select {
	case <-p.closed:
		return ErrClosed
	default:
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.closed:
		return ErrClosed
	case s := <-p.slots:
		defer func() { p.slots <- s }()
		if s.zygote == nil {
			z, err := p.start()
			if err != nil {
				return &SandboxError{Op: op, Err: err}
			}
			s.zygote = z
		}
		err := work(s.zygote)
		if err == nil || errors.Is(err, errEnded) {
			return ctx.Err()
		}
		// Whatever state the fork server is in, nobody waits for it.
		s.zygote.kill()
		stderr := s.zygote.stderr.String()
		s.zygote = nil
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &SandboxError{Op: op, Stderr: stderr, Err: err}
	}
}
