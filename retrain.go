package main

import (
	"context"
	"errors"
	"log/slog"

	"codea1/gpuworker"
	"codea1/gpuworker/tiny"
	"codea1/replay"
)

// retrainer is the trainer of package gpuworker as package replay wants it.
type retrainer struct{ logger *slog.Logger }

// Retrain implements replay.Retrainer with the configuration and the starting
// checkpoint that the run keeps in its directory.
func (r *retrainer) Retrain(ctx context.Context, job replay.RetrainJob) (err error) {
	var cli CLI
	parser, err := newParser(&cli)
	if err != nil {
		return err
	}
	// Parsing resolves the saved configuration as resuming the run would.
	if _, err := parser.Parse([]string{"train", "--resume", job.RunDir}); err != nil {
		return err
	}
	start := startPath(job.RunDir, job.Role)
	learner, err := tiny.Open(start, tiny.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, learner.Close()) }()
	trainer, err := gpuworker.NewTrainer(gpuworker.TrainerConfig{
		Bus: job.Bus, Learner: learner, Run: job.Run, Role: job.Role, Source: "retrain", Checkpoints: job.Work, Initial: start,
		Steps: job.Steps, Hyper: cli.Train.hyperparameters(job.Role, job.Start.Problems), KeepLast: 1, Logger: r.logger,
	})
	if err != nil {
		return err
	}
	return trainer.Run(ctx)
}
