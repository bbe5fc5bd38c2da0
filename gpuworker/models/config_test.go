package models

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codea1/events"
	"codea1/gpuworker"
)

// training is the configuration of a training with the embedded engine.
func training(codeModel string) *Config {
	return &Config{
		Models: events.ModelsBoth, Trains: true, Flags: gpuworker.ModelFlags{CodeModel: codeModel},
		Engine: gpuworker.EngineFlags{Engine: gpuworker.EngineTiny, Sampler: gpuworker.SamplerEngine},
		Step:   Step{Problems: 2, Answers: 3, Suites: 5, CodeTokens: 7, TestTokens: 11, Temperature: 1},
	}
}

// A process checks the engines that it opens, and only for models of a user.
func TestUses(t *testing.T) {
	t.Parallel()
	c := training("m")
	for stage, want := range map[string]Use{
		events.StageRolloutCode: {Role: events.RoleCode, Dir: "m", Samples: true},
		events.StageTrainerCode: {Role: events.RoleCode, Dir: "m", Trains: true},
		events.StageRolloutTest: {}, events.StageTrainerTest: {}, events.StageRewards: {},
	} {
		got := c.StageUses(stage, t.TempDir())
		if want.Dir == "" && len(got) > 0 || want.Dir != "" && (len(got) != 1 || got[0] != want) {
			t.Errorf("%s: %+v, want %+v", stage, got, want)
		}
	}
	run := t.TempDir()
	start := filepath.Join(run, "checkpoints", "code", "start")
	if err := os.MkdirAll(start, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := c.Uses(run); len(got) != 1 || got[0] != (Use{events.RoleCode, start, true, true}) {
		t.Errorf("of a run that has begun: %+v", got)
	}
	c.Engine.Engine = gpuworker.EngineTorch
	if got := c.Uses(run); got != nil {
		t.Errorf("of the torch engine: %+v", got)
	}
}

func TestWork(t *testing.T) {
	t.Parallel()
	c := training("")
	if w := c.Work(events.RoleCode); w.Prompts != 2 || w.Samples != 3 || w.Trained != 6 || w.Tokens != 7 || w.Reference {
		t.Errorf("code: %+v", w)
	}
	c.Training.KL = 0.1
	if w := c.Work(events.RoleTest); w.Prompts != 6 || w.Samples != 5 || w.Trained != 10 || w.Tokens != 11 || !w.Reference {
		t.Errorf("test: %+v", w)
	}
}

func TestSettingsThatExcludeEachOther(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Config){
		"--lora-rank 4 needs":           func(c *Config) { c.Engine.LoRARank = 4 },
		"--rollout-device cuda:1 needs": func(c *Config) { c.Engine.RolloutDevice = "cuda:1" },
		"--train-gpus 2 needs":          func(c *Config) { c.Engine.TrainGPUs = 2 },
		"--sampler vllm needs":          func(c *Config) { c.Engine.Sampler = gpuworker.SamplerVLLM },
		"a training gives the sampler":  func(c *Config) { c.Engine.Sampler = gpuworker.SamplerOpenAI },
		"name the model of the server":  func(c *Config) { c.Engine.Sampler, c.Trains = gpuworker.SamplerOpenAI, false },
		"the GPUs share the reference model": func(c *Config) {
			c.Engine.Engine, c.Engine.TrainGPUs, c.Engine.Reference = gpuworker.EngineTorch, 2, "cpu"
		},
		"--temperature 1 or without": func(c *Config) {
			c.Engine.Engine, c.Engine.Sampler, c.Step.Temperature, c.Sampling.TopK = gpuworker.EngineTorch, gpuworker.SamplerVLLM, 0.5, 9
		},
	} {
		c := training("")
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		change(c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
