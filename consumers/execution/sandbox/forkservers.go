package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/gofrs/flock"
	"golang.org/x/sync/errgroup"
)

// forkServers does jobs in Python fork servers on this machine: one for each
// slot of a pool.
type forkServers struct {
	config  Config
	python  interpreter
	level   Level
	version int // of Landlock at LevelConfined; 0: none
	bounds  bounds
	root    string        // private directory; the work directories of fork servers are below it
	lock    *flock.Flock  // of root
	running []*forkServer // by slot; nil where none runs
}

// startForkServers starts one fork server for each worker at the first of the
// levels that this machine gives.
func startForkServers(ctx context.Context, config Config, levels []Level) (*forkServers, error) {
	python, err := findPython(ctx, config.Python)
	if err != nil {
		return nil, err
	}
	root, lock, err := makeRoot()
	if err != nil {
		return nil, &Error{Op: "make the work directory", Err: err}
	}
	f := &forkServers{
		config: config, python: python, bounds: newBounds(config), root: root, lock: lock,
		running: make([]*forkServer, config.Workers+config.variedSlots()),
	}
	if err := f.startFirst(levels); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	var starting errgroup.Group
	for i := range f.running[1:config.Workers] { // the varied ones start when they are needed
		starting.Go(func() (err error) {
			f.running[1+i], err = f.start(false)
			return err
		})
	}
	if err := starting.Wait(); err != nil {
		return nil, errors.Join(&Error{Op: "open", Err: err}, f.Close())
	}
	return f, nil
}

// startFirst starts a fork server at the first level that this machine gives.
// All others run at that level.
func (f *forkServers) startFirst(levels []Level) error {
	var reasons []string
	for _, level := range levels {
		f.level = level
		first, err := f.start(false)
		if err == nil {
			f.running[0], f.version = first, first.landlock
			return nil
		}
		var refused *notGivenError
		if !errors.As(err, &refused) {
			return &Error{Op: "open", Err: err}
		}
		reasons = append(reasons, refused.Error())
	}
	return fmt.Errorf("%w: %s; %s", ErrNotIsolated, strings.Join(reasons, "; "), levelRemedy)
}

// start starts a fork server in a work directory of its own: a candidate of an
// earlier one may have left its directory in any state.
func (f *forkServers) start(varied bool) (*forkServer, error) {
	if err := os.MkdirAll(f.root, 0o700); err != nil {
		return nil, err
	}
	directory, err := os.MkdirTemp(f.root, "work-")
	if err != nil {
		return nil, err
	}
	return startForkServer(f.python, directory, f.level, f.config, f.bounds, varied)
}

// Describe implements Backend.
func (f *forkServers) Describe() Description {
	return Description{Python: f.python.Executable, Level: f.level, Isolation: f.level.describe(f.version), Bounds: f.bounds.String()}
}

// Close implements Backend.
func (f *forkServers) Close() error {
	var stopping sync.WaitGroup
	for _, server := range f.running {
		if server != nil {
			stopping.Go(server.stop)
		}
	}
	stopping.Wait()
	return errors.Join(removeAll(f.root), f.lock.Close())
}

// harmless is a job that fails only where the sandbox does.
var harmless = Job{Kind: JobCalls, Items: []string{"0"}, Each: startTimeout, Budget: startTimeout, ValueBytes: 64}

// Do implements Backend. It tries again in a fresh fork server where the sandbox
// failed; a failed try leaves no results.
//
// A program that ends the sandbox each time has failed: otherwise it would be
// masked, not scored. The sandbox has failed where it cannot do a harmless job,
// either, before one more try of the program or after.
func (f *forkServers) Do(ctx context.Context, slot Slot, j Job) (Session, error) {
	var failed *Error
	var best Session // of the failed tries
	server := &f.running[slot.Number]
	try := func() (s Session, err error) {
		s, err = f.try(ctx, server, j)
		if errors.As(err, &failed) {
			f.config.Logger.Warn("the sandbox failed, trying in a fresh one", "error", err)
			if s.Loads && (!best.Loads || len(s.Replies) > len(best.Replies)) {
				best = s
			}
			return Session{}, failed
		}
		failed = nil
		return s, err
	}
	tries := max(0, f.config.Retries) + 1
	for range tries {
		select {
		case <-slot.Closed:
			return Session{}, ErrClosed
		default:
		}
		if s, err := try(); failed == nil {
			return s, err
		}
	}
	works := func() bool {
		_, err := f.try(ctx, server, harmless)
		return err == nil
	}
	if works() {
		if s, err := try(); failed == nil {
			return s, err
		}
		if works() {
			best.Blame(&j)
			return best, nil
		}
	}
	return Session{}, fmt.Errorf("%d tries: %w", tries, failed)
}

// try does a job in a fork server, which it starts where none runs. With a *Error
// it also returns the replies that came.
func (f *forkServers) try(ctx context.Context, server **forkServer, j Job) (Session, error) {
	op := "run " + string(j.Kind)
	if *server == nil {
		started, err := f.start(j.Varied)
		if err != nil {
			return Session{}, &Error{Op: op, Err: err}
		}
		*server = started
	}
	s, err := (*server).do(ctx, j)
	switch {
	case ctx.Err() != nil && (err == nil || errors.Is(err, errEnded)):
		return Session{}, ctx.Err()
	case err == nil:
		return s, nil
	}
	// The fork server may be in any state: nothing waits for it.
	(*server).kill()
	stderr := (*server).stderr.String()
	_ = removeAll((*server).directory) // the program may have filled the disk; Close tries again
	*server = nil
	if ctx.Err() != nil {
		return Session{}, ctx.Err()
	}
	return s, &Error{Op: op, Stderr: stderr, Err: err}
}
