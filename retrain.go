package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"codea1/events/rundir"
	"codea1/events/settings"
	"codea1/gpuworker"
	"codea1/replay/fork"
)

// retrainer implements fork.Retrainer with the trainer of package gpuworker.
type retrainer struct{ logger *slog.Logger }

// Retrain implements fork.Retrainer. It starts from version 0 in the run directory
// and trains each part with the configuration of that part.
func (r *retrainer) Retrain(ctx context.Context, job fork.RetrainJob) error {
	for i := range job.Parts {
		if err := r.part(ctx, &job, &job.Parts[i]); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// part continues from the checkpoint of the part before, like the trainer of a
// fork.
func (r *retrainer) part(ctx context.Context, job *fork.RetrainJob, part *fork.RetrainPart) error {
	s, err := retrainSettings(job.RunDir, part.Start.Config)
	if err != nil {
		return err
	}
	return s.modelConfig().Retrain(ctx, gpuworker.TrainerConfig{
		Bus: job.Bus, Run: job.Run, Role: job.Role, Shared: part.Start.Models.Shared(),
		Checkpoints: job.Work, Initial: rundir.Start(job.RunDir, job.Role), Steps: part.Last,
	}, s.steps(part.Start.Problems), r.logger)
}

// retrainSettings returns the settings of a run.started, with those of this machine
// from the run directory and the environment.
func retrainSettings(dir, config string) (*Settings, error) {
	s, err := startedSettings(config)
	if err != nil {
		return nil, err
	}
	path := rundir.Config(dir)
	text, err := os.ReadFile(path)
	if err == nil {
		saved, err := readSettings(path, text, "")
		if err != nil {
			return nil, err
		}
		settings.Copy(s, saved, isMachine)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	var now RunSettings
	if err := settings.Resolve(&now, &s.RunSettings, envPrefix); err != nil {
		return nil, err
	}
	settings.Copy(s, &now, isMachine)
	return s, nil
}
