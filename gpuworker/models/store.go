package models

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
func (s *Set) remote(role events.Role) (*checkpoint.Remote, error) {
	if s.Flags.CheckpointStore == "" || s.OnServer(role) {
		return nil, nil // or the model has no checkpoints
	}
	address, err := objects.ParseAddress(s.Flags.CheckpointStore)
	if err != nil {
		return nil, fmt.Errorf("--checkpoint-store %w", err)
	}
	store, err := objects.Open(address)
	if err != nil {
		return nil, fmt.Errorf("--checkpoint-store: %w", err)
	}
	p := s.Process
	p.OnClose(store.Close)
	return &checkpoint.Remote{Objects: store, Run: p.Run, Role: role, Cache: rundir.Cache(p.Dir, role), Logger: p.Logger.With("part", "store")}, nil
}

// checkStore returns an error if the store refuses this process now. A store that does
// not answer is waited for later.
func (s *Set) checkStore(ctx context.Context, remote *checkpoint.Remote) error {
	if _, err := remote.Objects.List(ctx, s.Process.Run); errors.Is(err, objects.ErrRefused) {
		return fmt.Errorf("--checkpoint-store: %w", err)
	}
	return ctx.Err()
}

// UploadStart puts version 0 of each model into the store. A run that begins must not
// find versions of another run with its name.
func (s *Set) UploadStart(ctx context.Context, begins bool) error {
	run := s.Process.Run
	for _, role := range s.Models.Roles() {
		remote, err := s.remote(role)
		if err != nil {
			return err
		}
		if remote == nil {
			continue
		}
		if err := s.checkStore(ctx, remote); err != nil {
			return err
		}
		if begins {
			// A recorder without a log may continue a run that is on the bus.
			if begins, err = s.Process.Bus.HasRun(ctx, run); err != nil {
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
				return fmt.Errorf("--checkpoint-store has checkpoints of another run %s: choose another name, or delete the directory %s there", run, run)
			}
		}
		if err := remote.Upload(ctx, 0, rundir.Start(s.Process.Dir, role)); err != nil {
			return err
		}
	}
	return nil
}

// FetchStart fetches version 0 of the model of a stage from the store if the run
// directory of this machine lacks it.
func (s *Set) FetchStart(ctx context.Context, stage string, started *events.RunStarted) error {
	for _, role := range s.Models.Roles() {
		if !s.samplesIn(stage, role) && stage != events.TrainerStage(role).Name {
			continue
		}
		remote, err := s.remote(role)
		if err != nil || remote == nil {
			return err
		}
		if err := s.checkStore(ctx, remote); err != nil {
			return err
		}
		if err := remote.FetchInitial(ctx, *started.Start(role), rundir.Start(s.Process.Dir, role)); err != nil {
			return err
		}
	}
	return nil
}
