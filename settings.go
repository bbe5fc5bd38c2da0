package main

import (
	"fmt"
	"time"

	"codea1/consumers/evaluation"
	"codea1/events"
	"codea1/gpuworker"
	"codea1/producers/curriculum"
)

// This file hands the flags of a run to the packages that own their meaning.

// A worker renews its claim on an event three times per ack wait, over the
// network.
const (
	minAckWait = 100 * time.Millisecond
	maxAckWait = time.Hour
)

// steps returns the training steps of the run.
func (f *RunFlags) steps(problems int) int {
	if f.Steps > 0 {
		return f.Steps
	}
	return curriculum.StepsFor(problems, f.ProblemsPerStep, f.Epochs)
}

func (f *RunFlags) schedule(problems int) curriculum.Config {
	return curriculum.Config{
		Steps: f.steps(problems), ProblemsPerStep: f.ProblemsPerStep, Seed: f.Seed, MaxStaleness: f.MaxStaleness,
		Historical: f.Historical, EvalEvery: f.EvalEvery,
		Answers: f.Answers, Suites: f.Suites, Tests: f.Tests, Temperature: f.Temperature,
		CodeTokens: f.CodeTokens, TestTokens: f.TestTokens, Golden: f.needsGolden(),
	}
}

func (f *RunFlags) evaluation() evaluation.Config {
	return evaluation.Config{
		Answers: f.EvalAnswers, Buggy: evaluation.DefaultConfig().Buggy, Suites: f.EvalSuites, Tests: f.Tests,
		Temperature: f.Temperature, CodeTokens: f.CodeTokens, TestTokens: f.TestTokens,
	}
}

// hyperparameters returns those of a role's trainer.
func (f *RunFlags) hyperparameters(role events.Role, problems int) gpuworker.Hyperparameters {
	learningRate := f.LearningRate
	if role == events.RoleTest && f.TestLearningRate != 0 {
		learningRate = f.TestLearningRate
	}
	updates := (f.ProblemsPerStep + f.ProblemsPerUpdate - 1) / f.ProblemsPerUpdate // of one step
	return gpuworker.Hyperparameters{
		LearningRate: learningRate, WarmupSteps: f.WarmupSteps, OptimizerSteps: updates * f.steps(problems), MinLearningRatio: f.MinLRRatio,
		WeightDecay: f.WeightDecay, Beta1: f.Beta1, Beta2: f.Beta2, Epsilon: f.Epsilon, GradClip: f.GradClip,
		ClipLow: f.ClipLow, ClipHigh: f.ClipHigh, DualClip: f.DualClip, LogRatioClamp: f.LogRatioClamp, KLCoef: f.KL,
		GroupsPerBatch: f.ProblemsPerUpdate, MaxStaleness: f.MaxStaleness,
	}
}

// Validate names the first flag with a value that no run can have. Kong calls
// it once all layers are resolved.
func (f *RunFlags) Validate() error {
	for _, bound := range []struct {
		name        string
		value       int
		least, most int
	}{
		{"problems-per-step", f.ProblemsPerStep, 1, curriculum.MaxProblemsPerStep},
		{"epochs", f.Epochs, 1, 1_000_000},
		{"steps", f.Steps, 0, curriculum.MaxSteps},
		{"train-problems", f.TrainProblems, 0, 1 << 30},
		{"answers", f.Answers, 1, 1024},
		{"suites", f.Suites, 1, 1024},
		{"tests", f.Tests, 1, 1024},
		{"code-tokens", f.CodeTokens, 1, 1 << 20},
		{"test-tokens", f.TestTokens, 1, 1 << 20},
		{"top-k", f.TopK, 0, 1 << 30},
		{"problems-per-update", f.ProblemsPerUpdate, 1, curriculum.MaxProblemsPerStep},
		{"warmup-steps", f.WarmupSteps, 0, curriculum.MaxSteps},
		{"eval-problems", f.EvalProblems, 0, 1 << 30},
		{"eval-answers", f.EvalAnswers, 0, 1024},
		{"eval-suites", f.EvalSuites, 0, 1024},
		{"eval-every", f.EvalEvery, 0, curriculum.MaxSteps},
		{"sandboxes", f.Sandbox.Sandboxes, 0, 1024},
		{"keep-checkpoints", f.KeepCheckpoints, 1, 1 << 20},
		{"keep-every", f.KeepEvery, 0, curriculum.MaxSteps},
		{"keep-tokens", f.KeepTokens, 0, curriculum.MaxSteps},
	} {
		if bound.value < bound.least || bound.value > bound.most {
			return fmt.Errorf("--%s is %d; want %d to %d", bound.name, bound.value, bound.least, bound.most)
		}
	}
	if f.AckWait < minAckWait || f.AckWait > maxAckWait {
		return fmt.Errorf("--ack-wait is %v; want %v to %v", f.AckWait, minAckWait, maxAckWait)
	}
	if f.HoldDeadLetters < 0 {
		return fmt.Errorf("--hold-dead-letters is %v; want more than 0, or 0 for none", f.HoldDeadLetters)
	}
	if f.Sandbox.CallTimeout <= 0 {
		return fmt.Errorf("--call-timeout is %v; want more than 0", f.Sandbox.CallTimeout)
	}
	if !(f.Temperature > 0 && f.Temperature <= 100) {
		return fmt.Errorf("--temperature is %v; want more than 0, at most 100", f.Temperature)
	}
	if !(f.TopP > 0 && f.TopP <= 1) {
		return fmt.Errorf("--top-p is %v; want more than 0, at most 1", f.TopP)
	}
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		hyper := f.hyperparameters(role, f.ProblemsPerStep)
		if err := hyper.Validate(); err != nil {
			return err
		}
	}
	return nil
}
