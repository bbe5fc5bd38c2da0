package main

import (
	"fmt"

	"codea1/consumers/evaluation"
	"codea1/events"
	"codea1/gpuworker"
	"codea1/producers/curriculum"
)

// This file hands the flags of train to the packages that own their meaning.

// steps returns the training steps of the run.
func (t *TrainCommand) steps(problems int) int {
	if t.Steps > 0 {
		return t.Steps
	}
	return curriculum.StepsFor(problems, t.Questions, t.Epochs)
}

func (t *TrainCommand) schedule(problems int) curriculum.Config {
	return curriculum.Config{
		Steps: t.steps(problems), QuestionsPerStep: t.Questions, Seed: t.Seed, MaxStaleness: t.MaxStaleness,
		Historical: t.Historical, EvalEvery: t.EvalEvery,
		Answers: t.Answers, Suites: t.Suites, Tests: t.Tests, Temperature: t.Temperature,
		CodeTokens: t.CodeTokens, TestTokens: t.TestTokens, Golden: t.Reward == "golden",
	}
}

func (t *TrainCommand) evaluation() evaluation.Config {
	return evaluation.Config{
		Answers: t.EvalAnswers, Buggy: evaluation.DefaultConfig().Buggy, Suites: t.EvalSuites, Tests: t.Tests,
		Temperature: t.Temperature, CodeTokens: t.CodeTokens, TestTokens: t.TestTokens,
	}
}

// hyperparameters returns those of a role's trainer.
func (t *TrainCommand) hyperparameters(role events.Role, problems int) gpuworker.Hyperparameters {
	learningRate := t.LearningRate
	if role == events.RoleTest && t.TestLearningRate != 0 {
		learningRate = t.TestLearningRate
	}
	updates := (t.Questions + t.QuestionsPerUpdate - 1) / t.QuestionsPerUpdate // of one step
	return gpuworker.Hyperparameters{
		LearningRate: learningRate, WarmupSteps: t.WarmupSteps, OptimizerSteps: updates * t.steps(problems), MinLearningRatio: t.MinLRRatio,
		WeightDecay: t.WeightDecay, Beta1: t.Beta1, Beta2: t.Beta2, Epsilon: t.Epsilon, GradClip: t.GradClip,
		ClipLow: t.ClipLow, ClipHigh: t.ClipHigh, DualClip: t.DualClip, LogRatioClamp: t.LogRatioClamp, KLCoef: t.KL,
		GroupsPerBatch: t.QuestionsPerUpdate, MaxStaleness: t.MaxStaleness,
	}
}

// Validate names the first flag with a value that no run can have. Kong calls
// it once all layers are resolved.
func (t *TrainCommand) Validate() error {
	for _, f := range []struct {
		name        string
		value       int
		least, most int
	}{
		{"questions", t.Questions, 1, curriculum.MaxQuestionsPerStep},
		{"epochs", t.Epochs, 1, 1_000_000},
		{"steps", t.Steps, 0, curriculum.MaxSteps},
		{"train-problems", t.TrainProblems, 0, 1 << 30},
		{"answers", t.Answers, 1, 1024},
		{"suites", t.Suites, 1, 1024},
		{"tests", t.Tests, 1, 1024},
		{"code-tokens", t.CodeTokens, 1, 1 << 20},
		{"test-tokens", t.TestTokens, 1, 1 << 20},
		{"top-k", t.TopK, 0, 1 << 30},
		{"questions-per-update", t.QuestionsPerUpdate, 1, curriculum.MaxQuestionsPerStep},
		{"warmup-steps", t.WarmupSteps, 0, curriculum.MaxSteps},
		{"eval-problems", t.EvalProblems, 0, 1 << 30},
		{"eval-answers", t.EvalAnswers, 0, 1024},
		{"eval-suites", t.EvalSuites, 0, 1024},
		{"eval-every", t.EvalEvery, 0, curriculum.MaxSteps},
		{"sandboxes", t.Sandbox.Sandboxes, 0, 1024},
		{"keep-checkpoints", t.KeepCheckpoints, 1, 1 << 20},
		{"keep-every", t.KeepEvery, 0, curriculum.MaxSteps},
	} {
		if f.value < f.least || f.value > f.most {
			return fmt.Errorf("--%s is %d; want %d to %d", f.name, f.value, f.least, f.most)
		}
	}
	if t.Sandbox.CallTimeout <= 0 {
		return fmt.Errorf("--call-timeout is %v; want more than 0", t.Sandbox.CallTimeout)
	}
	if !(t.Temperature > 0 && t.Temperature <= 100) {
		return fmt.Errorf("--temperature is %v; want more than 0, at most 100", t.Temperature)
	}
	if !(t.TopP > 0 && t.TopP <= 1) {
		return fmt.Errorf("--top-p is %v; want more than 0, at most 1", t.TopP)
	}
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		hyper := t.hyperparameters(role, t.Questions)
		if err := hyper.Validate(); err != nil {
			return err
		}
	}
	return nil
}
