// Package gpuworker is the worker around an Engine: it samples both roles'
// rollouts and trains both policies.
//
// It owns how a prompt reads (prompt.go), which seeds a group is sampled with
// (seeds.go), how rollouts are batched (rollout.go),
// which weights are loaded (follower.go), what one training step learns from
// (collector.go, minibatch.go), and the checkpoints a role's trainer leaves
// behind (checkpoint.go, trainer.go).
//
// It must not know how tokens are computed: an engine is a Sampler or a
// Learner (engine.go), held by the sub-packages and joined by package main.
// Nor does it know where rewards come from or when a question is posed: it
// learns both from events.
//
// A rollout is a stateless worker with an outbox (events/outbox), so a
// redelivered group is never sampled twice. A trainer is a projection: its
// weights, its optimizer state and its position on the bus are one directory,
// renamed into place, which is what makes training exactly-once.
//
// Start reading at engine.go, then rollout.go and trainer.go; FORMAT.md describes
// what lies on disk.
package gpuworker
