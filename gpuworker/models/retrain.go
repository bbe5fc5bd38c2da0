package models

import (
	"context"
	"errors"
	"log/slog"

	"codea1/gpuworker"
	"codea1/gpuworker/torch"
)

// Retrain trains a role's model again with the groups on the bus of t, up to t.Steps. It
// continues the newest checkpoint in t.Checkpoints, or begins with t.Initial. steps are
// those that the run had planned.
func (c *Config) Retrain(ctx context.Context, t gpuworker.TrainerConfig, steps int, logger *slog.Logger) (err error) {
	learner, err := openEngine(ctx, &c.Engine, t.Initial, false, torch.Demand{}, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, learner.Close()) }()
	t.Learner, t.Source, t.KeepLast, t.Logger = learner, "retrain", 1, logger
	t.Hyper = c.Hyperparameters(t.Role, steps)
	trainer, err := gpuworker.NewTrainer(t)
	if err != nil {
		return err
	}
	return trainer.Run(ctx)
}
