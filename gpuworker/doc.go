// Package gpuworker is the worker around an engine: it samples the rollouts of
// both roles and trains both policies.
//
// It owns the text of prompts (prompt.go), the seeds of a group's completions
// (seeds.go), the batches of rollouts (rollout.go), the choice of the weights
// to sample from (follower.go), and the content of a training step
// (collector.go, minibatch.go, trainer.go). Package checkpoint owns the
// trainer's directories.
//
// It must not know how tokens are computed. An engine is a Sampler or a Learner
// (engine.go); the packages tiny, torch and openai implement it and package models
// opens it. It
// must not know how rewards are computed or when a problem is posed: it reads
// both from events.
//
// A rollout is a stateless worker with an outbox (events/outbox), so a
// redelivered group is never sampled again. A trainer is a projection: its
// weights, its optimizer state and its position on the bus are one directory,
// which is renamed when it is complete. This makes training exactly-once.
//
// Start reading at engine.go, then rollout.go and trainer.go.
package gpuworker
