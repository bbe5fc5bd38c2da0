package models

import (
	"fmt"
	"os"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/gpuworker"
	"codea1/gpuworker/tiny"
	"codea1/gpuworker/torch"
)

// Config says which models a run has, and the work that it has for them.
type Config struct {
	Models   events.Models
	Trains   bool // the run has steps
	Engine   gpuworker.EngineFlags
	Flags    gpuworker.ModelFlags
	Sampling gpuworker.SamplingFlags
	Training gpuworker.TrainingFlags
	Step     Step
}

// Step is the work of one step.
type Step struct {
	Problems, Answers, Suites int // suites of an answer
	CodeTokens, TestTokens    int // most tokens of a completion
	Temperature               float64
	MaxStaleness              int
}

// Use is a model of a user in a process.
type Use struct {
	Role            events.Role
	Dir             string // with the checkpoint
	Samples, Trains bool
}

// Uses returns the models of a process that samples and trains both roles with the
// embedded engine, without those that come with the program. run is the directory of a
// run that has begun; empty for none.
func (c *Config) Uses(run string) []Use {
	var uses []Use
	if c.Engine.Engine != gpuworker.EngineTiny {
		return nil
	}
	for _, role := range c.Models.Roles() {
		dir := c.Dir(role)
		if dir == "" || c.OnServer(role) {
			continue
		}
		if run != "" {
			if start := rundir.Start(run, role); exists(start) {
				dir = start
			}
		}
		uses = append(uses, Use{Role: role, Dir: dir, Samples: true, Trains: c.trains(role)})
	}
	return uses
}

// StageUses returns the models of a user in a process of one stage.
func (c *Config) StageUses(stage, run string) []Use {
	for _, use := range c.Uses(run) {
		use.Trains, use.Samples = stage == events.TrainerStage(use.Role).Name, c.samplesIn(stage, use.Role)
		if use.Samples || use.Trains {
			return []Use{use}
		}
	}
	return nil
}

// samplesIn reports whether a stage samples from the model of a role.
func (c *Config) samplesIn(stage string, role events.Role) bool {
	for _, sampled := range []events.Role{events.RoleCode, events.RoleTest} {
		if stage == events.RolloutStage(sampled).Name && c.Models.Policy(sampled) == role {
			return true
		}
	}
	return false
}

func (c *Config) trains(role events.Role) bool { return c.Trains && !c.Models.Frozen(role) }

// Dir returns the checkpoint directory that a role starts from; empty for the one that
// comes with the program.
func (c *Config) Dir(role events.Role) string {
	if role == events.RoleCode {
		return c.Flags.CodeModel
	}
	return c.Flags.TestModel
}

// OnServer reports whether the model of a role is on a model server. In a training it
// is the frozen one.
func (c *Config) OnServer(role events.Role) bool {
	return c.Engine.Sampler == gpuworker.SamplerOpenAI && (c.Flags.Frozen == "" || c.Models.Frozen(role))
}

// Hyperparameters returns those of a role's trainer.
func (c *Config) Hyperparameters(role events.Role, steps int) gpuworker.Hyperparameters {
	return c.Training.Hyperparameters(role, steps, c.Step.Problems, c.Step.MaxStaleness)
}

// Work returns the work of a role's model in one step.
func (c *Config) Work(role events.Role) tiny.Work {
	s := &c.Step
	work := tiny.Work{Prompts: s.Problems, Samples: s.Answers, Trained: s.Problems * s.Answers, Tokens: s.CodeTokens, Reference: c.Training.KL > 0}
	if role == events.RoleTest {
		work.Prompts, work.Samples, work.Trained, work.Tokens = s.Problems*s.Answers, s.Suites, s.Problems*s.Suites, s.TestTokens
	}
	return work
}

// torchWork is Work for the torch engine.
func (c *Config) torchWork(use Use) torch.Work {
	work, flags := c.Work(use.Role), &c.Engine
	return torch.Work{
		Samples: use.Samples, Trains: use.Trains, Tokens: work.Tokens, Together: min(RolloutBatch, work.Prompts) * work.Samples, Reference: work.Reference,
		ReferenceOn: flags.Reference, OptimizerState: flags.OptimizerState, Adapter: flags.LoRARank > 0, GPUs: flags.TrainGPUs,
		VLLMMemory: flags.VLLMShare(),
	}
}

// Validate returns an error about settings of models and engines that exclude each other.
func (c *Config) Validate() error {
	e := &c.Engine
	if e.LoRARank > 0 && e.Engine != gpuworker.EngineTorch {
		return fmt.Errorf("--lora-rank %d needs --engine %s; the engine %s trains all weights", e.LoRARank, gpuworker.EngineTorch, e.Engine)
	}
	if e.RolloutDevice != "" && e.Engine != gpuworker.EngineTorch {
		return fmt.Errorf("--rollout-device %s needs --engine %s; the engine %s samples on the CPU", e.RolloutDevice, gpuworker.EngineTorch, e.Engine)
	}
	if n := e.TrainGPUs; n > 1 {
		if e.Engine != gpuworker.EngineTorch {
			return fmt.Errorf("--train-gpus %d needs --engine %s; the engine %s trains on the CPU", n, gpuworker.EngineTorch, e.Engine)
		}
		if e.Reference != "device" && e.LoRARank == 0 {
			return fmt.Errorf("--reference %s with --train-gpus %d: the GPUs share the reference model; leave --reference at device", e.Reference, n)
		}
	}
	return c.checkSampler()
}

// ValidateTraining returns an error about the hyper-parameters of a trainer. A run without
// steps has no trainers.
func (c *Config) ValidateTraining(steps int) error {
	if !c.Trains {
		return nil
	}
	for _, role := range c.Models.TrainedRoles() {
		hyper := c.Hyperparameters(role, steps)
		if err := hyper.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// checkSampler refuses vLLM beside an engine that cannot give it weights, and to train a
// model on a server.
func (c *Config) checkSampler() error {
	e := &c.Engine
	switch {
	case e.Sampler == gpuworker.SamplerVLLM && e.Engine != gpuworker.EngineTorch:
		return fmt.Errorf("--sampler %s needs --engine %s, which gives vLLM the weights", gpuworker.SamplerVLLM, gpuworker.EngineTorch)
	case e.Sampler == gpuworker.SamplerVLLM && c.Step.Temperature != 1 && (c.Sampling.TopP < 1 || c.Sampling.TopK > 0):
		return fmt.Errorf("--sampler %s: vLLM has the log-probs of training at --temperature 1 or without --top-p and --top-k: change one of them or --sampler", gpuworker.SamplerVLLM)
	case e.Sampler != gpuworker.SamplerOpenAI:
		return nil
	case c.Trains && c.Flags.Frozen == "":
		return fmt.Errorf("--sampler %s: a training gives the sampler new weights after each step, and OpenAI's interface takes none: train with --sampler %s, name the role that the server samples with --frozen, or evaluate the server with codea1 eval URL",
			gpuworker.SamplerOpenAI, gpuworker.SamplerEngine)
	case e.Model == "":
		return fmt.Errorf("--sampler %s: name the model of the server with --model", gpuworker.SamplerOpenAI)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
