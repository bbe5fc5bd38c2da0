package main

import (
	"context"
	"errors"
	"fmt"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/gpuworker/checkpoint"
	"codea1/gpuworker/checkpoint/objects"
)

// remote returns the copies of a role's checkpoints in the store of the settings, or nil
// without one.
func (r *runner) remote(role events.Role) (*checkpoint.Remote, error) {
	if r.settings.Models.CheckpointStore == "" || r.settings.onServer(role) {
		return nil, nil // or the model has no checkpoints
	}
	address, err := objects.ParseAddress(r.settings.Models.CheckpointStore)
	if err != nil {
		return nil, fmt.Errorf("--checkpoint-store %w", err)
	}
	store, err := objects.Open(address)
	if err != nil {
		return nil, fmt.Errorf("--checkpoint-store: %w", err)
	}
	r.onClose(store.Close)
	return &checkpoint.Remote{Objects: store, Run: r.run, Role: role, Cache: rundir.Cache(r.dir, role), Logger: r.logger.With("part", "store")}, nil
}

// checkStore returns an error if the store refuses this process now. A store that does
// not answer is waited for later.
func (r *runner) checkStore(ctx context.Context, remote *checkpoint.Remote) error {
	if _, err := remote.Objects.List(ctx, r.run); errors.Is(err, objects.ErrRefused) {
		return fmt.Errorf("--checkpoint-store: %w", err)
	}
	return ctx.Err()
}

// uploadStart puts version 0 of each model into the store. A run that begins must not
// find versions of another run with its name.
func (r *recording) uploadStart(ctx context.Context, begins bool) error {
	for role := range r.start {
		remote, err := r.remote(role)
		if err != nil {
			return err
		}
		if remote == nil {
			continue
		}
		if err := r.checkStore(ctx, remote); err != nil {
			return err
		}
		if begins {
			// A recorder without a log may continue a run that is on the bus.
			if begins, err = r.bus.HasRun(ctx, r.run); err != nil {
				return err
			}
			begins = !begins
		}
		if begins {
			begun, err := remote.Begun(ctx)
			if err != nil {
				return err
			}
			if begun {
				return fmt.Errorf("--checkpoint-store has checkpoints of another run %s: choose another name, or delete the directory %s there", r.run, r.run)
			}
		}
		if err := remote.Upload(ctx, 0, rundir.Start(r.dir, role)); err != nil {
			return err
		}
	}
	return nil
}

// fetchStart fetches version 0 of the model of a stage from the store if the run
// directory of this machine lacks it.
func (r *runner) fetchStart(ctx context.Context, stage string, started *events.RunStarted) error {
	for _, role := range r.settings.models().Roles() {
		samples := false
		for _, sampled := range []events.Role{events.RoleCode, events.RoleTest} {
			samples = samples || stage == events.RolloutStage(sampled).Name && r.settings.models().Policy(sampled) == role
		}
		if !samples && stage != events.TrainerStage(role).Name {
			continue
		}
		remote, err := r.remote(role)
		if err != nil || remote == nil {
			return err
		}
		if err := r.checkStore(ctx, remote); err != nil {
			return err
		}
		if err := remote.FetchInitial(ctx, started.Start(role).SHA256, rundir.Start(r.dir, role)); err != nil {
			return err
		}
	}
	return nil
}
