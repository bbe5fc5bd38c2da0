package main

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/events/services"
	"codea1/gpuworker"
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

// copyStart copies the checkpoint that a role's model starts from into dir, unless
// dir exists.
func copyStart(ctx context.Context, flags *gpuworker.EngineFlags, role events.Role, from, dir string) error {
	if flags.Engine == gpuworker.EngineTorch && from != "" {
		return torch.CopyStart(ctx, flags.TorchPython, role, from, dir)
	}
	return tiny.CopyStart(ctx, role, from, dir)
}

// openSharedEngines opens the torch engines of all models before the run begins, so
// that a missing library costs no run. The rollout and the trainer of a role
// share one unless rollouts have another device. The embedded engine samples and trains at the same time, so each
// stage opens its own.
func (r *runner) openSharedEngines(ctx context.Context) error {
	if r.settings.Engine.Sampler == gpuworker.SamplerOpenAI {
		if err := probeServer(ctx, &r.settings.Engine, r.logger); err != nil {
			return err
		}
	}
	if r.settings.Engine.Engine != gpuworker.EngineTorch {
		return nil
	}
	models := r.settings.models()
	roles := slices.DeleteFunc(models.Roles(), r.settings.onServer)
	apart := r.settings.Engine.RolloutDevice != ""
	var err error
	r.engines, err = r.openAll(ctx, roles, func(role events.Role) modelUse {
		return modelUse{role: role, samples: !apart, trains: r.settings.trains() && !models.Frozen(role)}
	})
	if len(r.engines) > 1 {
		r.turns = &gpuworker.Turns{}
	}
	if err == nil && apart {
		r.samplers, err = r.openAll(ctx, roles, func(role events.Role) modelUse { return modelUse{role: role, samples: true} })
	}
	return err
}

// openAll opens an engine for each role with a use.
func (r *runner) openAll(ctx context.Context, roles []events.Role, use func(events.Role) modelUse) (map[events.Role]engine, error) {
	opened := map[events.Role]engine{}
	var uses []modelUse
	for _, role := range roles {
		if u := use(role); u.samples || u.trains {
			uses = append(uses, u)
		}
	}
	for i, u := range uses { // the first child starts while the whole memory is free
		e, err := r.openOwnEngine(ctx, u.role, uses[i:]...)
		if err != nil {
			return nil, err
		}
		opened[u.role] = e
	}
	return opened, nil
}

// openSampler returns an engine that samples in a role. A model that samples in both
// roles has an engine for each: the follower of one role must not change the weights
// of a sampling in the other.
func (r *runner) openSampler(ctx context.Context, role events.Role) (engine, error) {
	if own := r.settings.models().Policy(role); own != role {
		return r.openOwnEngine(ctx, own, modelUse{role: own, samples: true})
	}
	if e := r.samplers[role]; e != nil {
		return e, nil
	}
	if r.settings.Engine.RolloutDevice != "" {
		return r.openOwnEngine(ctx, role, modelUse{role: role, samples: true})
	}
	return r.openEngine(ctx, role, modelUse{role: role, samples: true})
}

// openPolicy returns the policy that samples in a role: a model of this process with the
// follower that loads its new versions, or a model on a server.
func (r *runner) openPolicy(ctx context.Context, g *services.Group, role events.Role) (gpuworker.RolloutPolicy, error) {
	logger := r.logger.With("role", role)
	if r.settings.onServer(role) {
		sampler, err := openServer(&r.settings.Engine, logger)
		if err != nil {
			return nil, err
		}
		r.onClose(sampler.Close)
		return gpuworker.Frozen{Sampler: sampler}, nil
	}
	sampler, err := r.openSampler(ctx, role)
	if err != nil {
		return nil, err
	}
	own := r.settings.models().Policy(role) // its model samples
	remote, err := r.remote(own)
	if err != nil {
		return nil, err
	}
	policy, err := gpuworker.NewFollower(gpuworker.FollowerConfig{
		Bus: r.bus, Run: r.run, Role: own, Sampler: sampler, Checkpoints: rundir.Checkpoints(r.dir, own), Remote: remote, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	if !r.settings.models().Frozen(own) { // otherwise it ignores versions that anyone may have published
		r.serve(g, events.RolloutStage(role).Name+" policy", policy.Run)
	}
	return policy, nil
}

// openEngine returns the engine of a role's model at version 0, until the runner
// closes. The torch engine needs free memory for the models of uses.
func (r *runner) openEngine(ctx context.Context, role events.Role, uses ...modelUse) (engine, error) {
	if e := r.engines[role]; e != nil {
		return e, nil
	}
	return r.openOwnEngine(ctx, role, uses...)
}

// openOwnEngine is openEngine without a shared one.
func (r *runner) openOwnEngine(ctx context.Context, role events.Role, uses ...modelUse) (engine, error) {
	var needs torch.Demand
	if r.settings.Engine.Engine == gpuworker.EngineTorch {
		for _, use := range uses {
			demand, err := torch.ReadDemand(rundir.Start(r.dir, use.role), r.settings.torchWork(use))
			if err != nil {
				return nil, err
			}
			needs = needs.Add(demand)
		}
	}
	flags := r.settings.Engine
	if !slices.ContainsFunc(uses, func(use modelUse) bool { return use.role == role && use.trains }) {
		flags.TrainGPUs, flags.Device = 1, cmp.Or(flags.RolloutDevice, flags.Device)
	}
	samples := slices.ContainsFunc(uses, func(use modelUse) bool { return use.samples })
	e, err := openEngine(ctx, &flags, rundir.Start(r.dir, role), samples, needs, r.logger.With("role", role))
	if err != nil {
		return nil, err
	}
	r.onClose(e.Close)
	return e, nil
}
