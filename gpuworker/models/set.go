package models

import (
	"cmp"
	"context"
	"slices"

	"codea1/events"
	"codea1/events/process"
	"codea1/events/rundir"
	"codea1/events/services"
	"codea1/gpuworker"
	"codea1/gpuworker/torch"
)

// Set is the models that a process has opened. They close with the process.
type Set struct {
	*Config
	Process *process.Process

	engines  map[events.Role]engine // that the stages of a role share
	samplers map[events.Role]engine // of rollouts on another device
	turns    *gpuworker.Turns       // of the trainers of both roles, where they share a device
}

// OpenShared opens the torch engines of all models before the run begins, so
// that a missing library costs no run. The rollout and the trainer of a role
// share one unless rollouts have another device. The embedded engine samples and trains at the same time, so each
// stage opens its own.
func (s *Set) OpenShared(ctx context.Context) error {
	if s.Engine.Sampler == gpuworker.SamplerOpenAI {
		if err := ProbeServer(ctx, &s.Engine, s.Process.Logger); err != nil {
			return err
		}
	}
	if s.Engine.Engine != gpuworker.EngineTorch {
		return nil
	}
	roles := slices.DeleteFunc(s.Models.Roles(), s.OnServer)
	apart := s.Engine.RolloutDevice != ""
	var err error
	s.engines, err = s.openAll(ctx, roles, func(role events.Role) Use {
		return Use{Role: role, Samples: !apart, Trains: s.trains(role)}
	})
	if len(s.engines) > 1 {
		s.turns = &gpuworker.Turns{}
	}
	if err == nil && apart {
		s.samplers, err = s.openAll(ctx, roles, func(role events.Role) Use { return Use{Role: role, Samples: true} })
	}
	return err
}

// openAll opens an engine for each role with a use.
func (s *Set) openAll(ctx context.Context, roles []events.Role, use func(events.Role) Use) (map[events.Role]engine, error) {
	opened := map[events.Role]engine{}
	var uses []Use
	for _, role := range roles {
		if u := use(role); u.Samples || u.Trains {
			uses = append(uses, u)
		}
	}
	for i, u := range uses { // the first child starts while the whole memory is free
		e, err := s.openOwn(ctx, u.Role, uses[i:]...)
		if err != nil {
			return nil, err
		}
		opened[u.Role] = e
	}
	return opened, nil
}

// openSampler returns an engine that samples in a role. A model that samples in both
// roles has an engine for each: the follower of one role must not change the weights
// of a sampling in the other.
func (s *Set) openSampler(ctx context.Context, role events.Role) (engine, error) {
	if own := s.Models.Policy(role); own != role {
		return s.openOwn(ctx, own, Use{Role: own, Samples: true})
	}
	if e := s.samplers[role]; e != nil {
		return e, nil
	}
	if s.Engine.RolloutDevice != "" {
		return s.openOwn(ctx, role, Use{Role: role, Samples: true})
	}
	return s.open(ctx, role, Use{Role: role, Samples: true})
}

// openPolicy returns the policy that samples in a role: a model of this process with the
// follower that loads its new versions, or a model on a server.
func (s *Set) openPolicy(ctx context.Context, g *services.Group, role events.Role) (gpuworker.RolloutPolicy, error) {
	p := s.Process
	logger := p.Logger.With("role", role)
	if s.OnServer(role) {
		sampler, err := openServer(&s.Engine, logger)
		if err != nil {
			return nil, err
		}
		p.OnClose(sampler.Close)
		return gpuworker.Frozen{Sampler: sampler}, nil
	}
	sampler, err := s.openSampler(ctx, role)
	if err != nil {
		return nil, err
	}
	own := s.Models.Policy(role) // its model samples
	remote, err := s.remote(own)
	if err != nil {
		return nil, err
	}
	policy, err := gpuworker.NewFollower(gpuworker.FollowerConfig{
		Bus: p.Bus, Run: p.Run, Role: own, Sampler: sampler, Checkpoints: rundir.Checkpoints(p.Dir, own), Remote: remote, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	if !s.Models.Frozen(own) { // otherwise it ignores versions that anyone may have published
		p.Serve(g, events.RolloutStage(role).Name+" policy", policy.Run)
	}
	return policy, nil
}

// open returns the engine of a role's model at version 0, until the process closes.
// The torch engine needs free memory for the models of uses.
func (s *Set) open(ctx context.Context, role events.Role, uses ...Use) (engine, error) {
	if e := s.engines[role]; e != nil {
		return e, nil
	}
	return s.openOwn(ctx, role, uses...)
}

// openOwn is open without a shared engine.
func (s *Set) openOwn(ctx context.Context, role events.Role, uses ...Use) (engine, error) {
	p := s.Process
	var needs torch.Demand
	if s.Engine.Engine == gpuworker.EngineTorch {
		for _, use := range uses {
			demand, err := torch.ReadDemand(rundir.Start(p.Dir, use.Role), s.torchWork(use))
			if err != nil {
				return nil, err
			}
			needs = needs.Add(demand)
		}
	}
	flags := s.Engine
	if !slices.ContainsFunc(uses, func(use Use) bool { return use.Role == role && use.Trains }) {
		flags.TrainGPUs, flags.Device = 1, cmp.Or(flags.RolloutDevice, flags.Device)
	}
	samples := slices.ContainsFunc(uses, func(use Use) bool { return use.Samples })
	e, err := openEngine(ctx, &flags, rundir.Start(p.Dir, role), samples, needs, p.Logger.With("role", role))
	if err != nil {
		return nil, err
	}
	p.OnClose(e.Close)
	return e, nil
}
