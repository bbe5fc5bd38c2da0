package sandbox

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// Pool runs jobs on a backend, a fixed number at a time, and remembers the
// results of executions. Its methods may be called from any number of goroutines;
// a job waits for a free slot.
type Pool struct {
	config  Config
	backend Backend
	about   Description
	cache   *cache
	slots   chan int // numbers of the free slots
	varied  chan int // numbers of the free slots for varied jobs

	closing sync.Once
	closed  chan struct{}
}

// Backend is where jobs run: the fork servers of this machine, or a SandboxFusion
// server. A program, its calls and their results mean the same in both.
type Backend interface {
	// Do does a job with its limits set. At most one job at a time has a slot.
	// The error is ctx's, ErrClosed or a *Error. The job's program never
	// causes one.
	Do(ctx context.Context, slot Slot, j Job) (Session, error)
	// Describe returns the same description at every call.
	Describe() Description
	// Close is called once, when no job is running.
	Close() error
}

// Slot is the right to run one job.
type Slot struct {
	Number int             // from 0 to Config.Workers - 1, and from there on for varied jobs
	Closed <-chan struct{} // is closed when the pool is: no further try of the job begins
}

// Description says where jobs run, in words for people.
type Description struct {
	Python    string // path of the interpreter, or address of the server
	Level     Level  // at least as strong as the configured one
	Isolation string // what the level means there
	Bounds    string // what limits the memory of a candidate's processes together
}

// Open finds Python and starts the fork servers. The caller closes the pool.
// The error is ErrNoPython, ErrNotIsolated, about a field of config, or a
// *Error.
func Open(ctx context.Context, config Config) (*Pool, error) {
	config, err := config.Complete()
	if err != nil {
		return nil, err
	}
	return openLocal(ctx, config, levels[:slices.Index(levels, config.Level)+1])
}

// OpenAt is Open at exactly one level: a machine that gives a stronger one does
// not use it.
func OpenAt(ctx context.Context, config Config, level Level) (*Pool, error) {
	config.Level = level
	config, err := config.Complete()
	if err != nil {
		return nil, err
	}
	return openLocal(ctx, config, []Level{level})
}

// openLocal opens a pool of this machine at the first of the levels that the
// machine gives.
func openLocal(ctx context.Context, config Config, levels []Level) (*Pool, error) {
	servers, err := startForkServers(ctx, config, levels)
	if err != nil {
		return nil, err
	}
	return NewPool(config, servers), nil
}

// NewPool returns a pool that runs jobs on a backend, which the pool closes.
// config is complete.
func NewPool(config Config, backend Backend) *Pool {
	p := &Pool{
		config: config, backend: backend, about: backend.Describe(), cache: newCache(config.CacheBytes),
		slots: make(chan int, config.Workers), varied: make(chan int, config.variedSlots()), closed: make(chan struct{}),
	}
	for number := range config.Workers {
		p.slots <- number
	}
	for number := range config.variedSlots() {
		p.varied <- config.Workers + number
	}
	return p
}

// Config returns the complete configuration.
func (p *Pool) Config() Config { return p.config }

// Describe says where jobs run.
func (p *Pool) Describe() Description { return p.about }

// complete returns the job with the configured limits in place of zeros.
func (p *Pool) complete(j Job) Job {
	j.ValueBytes = cmp.Or(j.ValueBytes, p.config.ValueBytes)
	j.Budget = cmp.Or(j.Budget, p.config.JobTimeout)
	j.Each = cmp.Or(j.Each, p.config.CallTimeout)
	return j
}

// Do does a job in one child if all goes well, and in a fresh child for the
// rest of the items after each that hangs or kills its child. The error is
// ctx's, ErrClosed or a *Error.
func (p *Pool) Do(ctx context.Context, j Job) (Session, error) {
	j = p.complete(j)
	select {
	case <-p.closed:
		return Session{}, ErrClosed
	default:
	}
	slots := p.slots
	if j.Varied {
		slots = p.varied
	}
	select {
	case <-ctx.Done():
		return Session{}, ctx.Err()
	case <-p.closed:
		return Session{}, ErrClosed
	case number := <-slots:
		defer func() { slots <- number }()
		return p.backend.Do(ctx, Slot{number, p.closed}, j)
	}
}

// Close waits for jobs that are still running and closes the backend. Cancel
// the jobs' contexts first to close at once. A second Close does nothing.
func (p *Pool) Close() error {
	var err error
	p.closing.Do(func() {
		close(p.closed)
		for range p.config.Workers {
			<-p.slots
		}
		for range p.config.variedSlots() {
			<-p.varied
		}
		err = p.backend.Close()
	})
	return err
}
