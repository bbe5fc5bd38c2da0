package main

import (
	"context"
	"errors"
	"log/slog"

	"codea1/events/rundir"
	"codea1/gpuworker"
	"codea1/gpuworker/tiny"
	"codea1/replay/fork"
)

// retrainer implements fork.Retrainer with the trainer of package gpuworker.
type retrainer struct{ logger *slog.Logger }

// Retrain implements fork.Retrainer. It starts from version 0 in the run directory
// and trains each part with the configuration of that part.
func (r *retrainer) Retrain(ctx context.Context, job fork.RetrainJob) (err error) {
	learner, err := tiny.Open(rundir.Start(job.RunDir, job.Role))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, learner.Close()) }()
	for i := range job.Parts {
		if err := r.part(ctx, &job, &job.Parts[i], learner); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// part continues from the checkpoint of the part before, like the trainer of a
// fork.
func (r *retrainer) part(ctx context.Context, job *fork.RetrainJob, part *fork.RetrainPart, learner gpuworker.Learner) error {
	settings, err := startedSettings(part.Start.Config)
	if err != nil {
		return err
	}
	trainer, err := gpuworker.NewTrainer(gpuworker.TrainerConfig{
		Bus: job.Bus, Learner: learner, Run: job.Run, Role: job.Role, Source: "retrain",
		Checkpoints: job.Work, Initial: rundir.Start(job.RunDir, job.Role),
		Steps: part.Last, Hyper: settings.hyperparameters(job.Role, part.Start.Problems), KeepLast: 1, Logger: r.logger,
	})
	if err != nil {
		return err
	}
	return trainer.Run(ctx)
}
