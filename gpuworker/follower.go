package gpuworker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"codea1/events"
	"codea1/gpuworker/checkpoint"
)

// FollowerConfig is the configuration of a Follower.
type FollowerConfig struct {
	Bus     events.Bus
	Run     string
	Role    events.Role
	Sampler Sampler // with version 0 of the policy
	// Checkpoints is the folder of the role's checkpoints in the run directory.
	// The Follower loads from nowhere else.
	Checkpoints string
	// Remote has the versions that Checkpoints lacks; nil for none.
	Remote *checkpoint.Remote
	// CheckpointWait is how long the Follower waits for a missing checkpoint: a
	// trainer that restarts from an older checkpoint makes it again. Default
	// 2 minutes.
	CheckpointWait time.Duration
	Logger         *slog.Logger // default: discard
}

// Follower samples from the newest policy version that it has loaded and reports
// that version.
//
// It is safe for concurrent use. It calls the engine from one goroutine at a
// time, so it never replaces weights during a Sample.
type Follower struct {
	config FollowerConfig

	// engine is a lock of the Sampler: it holds one token, and a caller takes
	// it. Unlike a mutex it can be waited for until a context ends.
	engine chan struct{}

	mu      sync.Mutex
	version int           // of the weights in the Sampler
	changed chan struct{} // closed when version increases
}

// NewFollower returns a Follower at version 0.
func NewFollower(config FollowerConfig) (*Follower, error) {
	if config.Bus == nil || config.Sampler == nil || config.Checkpoints == "" {
		return nil, errors.New("policy follower: a bus, a sampler and the folder of the checkpoints are needed")
	}
	if err := config.Role.Validate(); err != nil {
		return nil, fmt.Errorf("policy follower: %w", err)
	}
	if config.CheckpointWait == 0 {
		config.CheckpointWait = 2 * time.Minute
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Follower{config: config, engine: make(chan struct{}, 1), changed: make(chan struct{})}
	f.engine <- struct{}{}
	return f, nil
}

// Version returns the loaded policy version.
func (f *Follower) Version() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version
}

// WaitVersion waits until the loaded version is at least least.
func (f *Follower) WaitVersion(ctx context.Context, least int) error {
	for {
		f.mu.Lock()
		version, changed := f.version, f.changed
		f.mu.Unlock()
		if version >= least {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// EncodePrompt calls Sampler.EncodePrompt. It waits for a running Sample.
func (f *Follower) EncodePrompt(ctx context.Context, messages []Message) ([]int32, error) {
	if err := f.acquire(ctx); err != nil {
		return nil, err
	}
	defer f.release()
	tokens, err := f.config.Sampler.EncodePrompt(messages)
	return tokens, engineError("encode prompt", err)
}

// Sample calls Sampler.Sample and also returns the policy version.
func (f *Follower) Sample(ctx context.Context, requests []SampleRequest, params SamplingParams) ([][]events.Completion, int, error) {
	if err := f.acquire(ctx); err != nil {
		return nil, 0, err
	}
	defer f.release()
	completions, err := f.config.Sampler.Sample(ctx, requests, params)
	if err == nil {
		err = checkCompletions(requests, completions)
	}
	// The version cannot change here because loading needs the engine lock.
	return completions, f.Version(), engineError("sample", err)
}

func checkCompletions(requests []SampleRequest, completions [][]events.Completion) error {
	if len(completions) != len(requests) {
		return fmt.Errorf("%d results for %d requests", len(completions), len(requests))
	}
	for i := range requests {
		if len(completions[i]) != len(requests[i].Seeds) {
			return fmt.Errorf("request %d: %d completions for %d seeds", i, len(completions[i]), len(requests[i].Seeds))
		}
	}
	return nil
}

// Run reads policy.updated from the start of the run and loads the newest
// version. It skips a version if a newer one arrives before it is loaded. It
// returns nil when ctx ends, and an error if a checkpoint cannot be loaded.
func (f *Follower) Run(ctx context.Context) error {
	reader, err := f.config.Bus.Read(ctx, events.ReadConfig{
		Run: f.config.Run, Types: []events.Type{events.TypePolicyUpdated}, From: events.Start,
	})
	if err != nil {
		return fmt.Errorf("policy follower %s: %w", f.config.Role, err)
	}
	// read continues while load loads a checkpoint, so newest always holds the
	// newest version.
	newest := make(chan *events.PolicyUpdated, 1)
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.read(groupCtx, reader, newest) })
	group.Go(func() error { return f.load(groupCtx, newest) })
	err = group.Wait()
	if closeErr := reader.Close(); err == nil {
		err = closeErr
	}
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("policy follower %s: %w", f.config.Role, err)
	}
	return nil
}

// read sends the newest version of the role to newest.
func (f *Follower) read(ctx context.Context, reader events.Reader, newest chan *events.PolicyUpdated) error {
	seen := 0
	for {
		m, _, err := reader.Next(ctx)
		if err != nil {
			return err
		}
		e, err := m.Admit()
		if err != nil {
			f.config.Logger.Debug("ignored a message that is no event", "id", m.ID, "type", m.Type, "group", m.Group, "error", err)
			continue
		}
		p := e.Payload.(*events.PolicyUpdated)
		// A trainer publishes its versions in order, so another one is not its own.
		if p.Role != f.config.Role || p.Version != seen+1 {
			continue
		}
		seen = p.Version
		select {
		case <-newest: // a newer version replaces it before it is loaded
		default:
		}
		newest <- p
	}
}

func (f *Follower) load(ctx context.Context, newest <-chan *events.PolicyUpdated) error {
	for {
		select {
		case p := <-newest:
			if err := f.loadOrSkip(ctx, p, newest); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// loadOrSkip loads a version. If its directory is missing, loadOrSkip waits for
// the directory or for a newer version: the trainer deletes old versions.
func (f *Follower) loadOrSkip(ctx context.Context, p *events.PolicyUpdated, newest <-chan *events.PolicyUpdated) error {
	const retryEvery = 200 * time.Millisecond
	// A resumed run first reads updates of versions that are deleted. The newest
	// version follows soon, so these are not worth a warning.
	const warnAfter = 10 // retries
	deadline := time.NewTimer(f.config.CheckpointWait)
	defer deadline.Stop()
	retry := time.NewTicker(retryEvery)
	defer retry.Stop()
	for retries := 0; ; retries++ {
		err := f.loadVersion(ctx, p)
		var damaged *checkpoint.Error
		inStore := f.config.Remote != nil && errors.As(err, &damaged)
		if err == nil || !errors.Is(err, fs.ErrNotExist) && !inStore {
			return err
		}
		retryDue := retry.C
		if inStore { // only a newer version helps; the next try takes long
			retryDue = nil
			f.config.Logger.Error("policy checkpoint is damaged, waiting for a newer version", "version", p.Version, "error", err, "at_most", f.config.CheckpointWait)
		}
		if retries == warnAfter {
			f.config.Logger.Warn("policy checkpoint is missing, waiting",
				"version", p.Version, "uri", p.Checkpoint.URI, "at_most", f.config.CheckpointWait)
		}
		select {
		case p = <-newest:
			retries = -1
			deadline.Reset(f.config.CheckpointWait)
		case <-retryDue:
		case <-deadline.C:
			return fmt.Errorf("%w; restore it, or delete newer checkpoints so that the trainer makes it again", err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// loadVersion checks that a checkpoint has the SHA-256 of the event and loads
// it.
func (f *Follower) loadVersion(ctx context.Context, p *events.PolicyUpdated) error {
	folder := checkpoint.Folder{Path: f.config.Checkpoints, Run: f.config.Run, Role: f.config.Role}
	dir, err := folder.Find(ctx, p.Version, p.Checkpoint)
	if f.config.Remote != nil && errors.Is(err, fs.ErrNotExist) {
		dir, err = f.config.Remote.Fetch(ctx, p.Version, p.Checkpoint)
	}
	if err != nil {
		return fmt.Errorf("version %d: %w", p.Version, err)
	}
	started := time.Now()
	if err := f.acquire(ctx); err != nil {
		return err
	}
	defer f.release()
	if err := f.config.Sampler.LoadWeights(ctx, dir); err != nil {
		return engineError("load weights", err)
	}
	f.mu.Lock()
	f.version = p.Version
	close(f.changed)
	f.changed = make(chan struct{})
	f.mu.Unlock()
	f.config.Logger.Debug("policy loaded", "role", p.Role, "version", p.Version, "seconds", time.Since(started).Seconds())
	return nil
}

func (f *Follower) acquire(ctx context.Context) error {
	select {
	case <-f.engine:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *Follower) release() { f.engine <- struct{}{} }
