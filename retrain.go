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

// retrainer is the trainer of package gpuworker as package replay wants it.
type retrainer struct{ logger *slog.Logger }

// Retrain implements fork.Retrainer with the configuration that each part was
// started with, and the starting checkpoint that the run keeps in its directory.
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

// part trains on from the checkpoint of the part before, as the trainer of a
// fork does.
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
