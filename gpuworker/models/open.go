package models

import (
	"context"
	"log/slog"
	"strings"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/gpuworker"
	"codea1/gpuworker/checkpoint"
	"codea1/gpuworker/tiny"
	"codea1/gpuworker/torch"
)

// engine computes one policy: it samples and trains.
type engine interface {
	gpuworker.Sampler
	gpuworker.Learner
}

// openEngine opens a checkpoint directory with the engine of the settings.
// needs is the memory that must be free; zero: no check.
func openEngine(ctx context.Context, flags *gpuworker.EngineFlags, dir string, samples bool, needs torch.Demand, logger *slog.Logger) (engine, error) {
	if flags.Engine == gpuworker.EngineTorch {
		var vllm *torch.VLLM
		if flags.Sampler == gpuworker.SamplerVLLM && samples {
			vllm = &torch.VLLM{Memory: flags.VLLMMemory, TensorParallel: flags.VLLMTensorParallel, DataParallel: flags.VLLMDataParallel}
		}
		return torch.Start(ctx, torch.Options{
			Python: flags.TorchPython, Dir: dir, Device: flags.Device, OptimizerState: flags.OptimizerState, Reference: flags.Reference,
			LoRARank: flags.LoRARank, LoRAAlpha: flags.LoRAAlpha, LoRATargets: strings.Split(flags.LoRATargets, ","), VLLM: vllm, Needs: needs, Logger: logger,
			TrainGPUs: flags.TrainGPUs, Broadcast: flags.BroadcastWeights,
		})
	}
	return tiny.Open(dir)
}

// Start copies version 0 of every model into a run directory, unless it is there, and
// returns what run.started says about them.
func (c *Config) Start(ctx context.Context, run string) (map[events.Role]events.Checkpoint, error) {
	start := map[events.Role]events.Checkpoint{}
	for _, role := range c.Models.Roles() {
		if c.OnServer(role) {
			start[role] = serverStart(&c.Engine)
			continue
		}
		dir := rundir.Start(run, role)
		if err := c.copyStart(ctx, role, dir); err != nil {
			return nil, err
		}
		described, err := checkpoint.Describe(ctx, dir)
		if err != nil {
			return nil, err
		}
		start[role] = described
	}
	return start, nil
}

// copyStart copies the checkpoint that a role's model starts from into dir, unless
// dir exists.
func (c *Config) copyStart(ctx context.Context, role events.Role, dir string) error {
	from := c.Dir(role)
	if c.Engine.Engine == gpuworker.EngineTorch && from != "" {
		return torch.CopyStart(ctx, c.Engine.TorchPython, role, from, dir)
	}
	return tiny.CopyStart(ctx, role, from, dir)
}
