package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"

	"github.com/alecthomas/kong"

	"codea1/consumers/execution/judging"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
	"codea1/events/process"
	"codea1/events/rundir/saved"
	"codea1/events/services"
	"codea1/events/settings"
	"codea1/gpuworker"
)

// StageCommand is `codea1 stage`: one stage of a run in a separate process. The
// recorder decides the settings of the run; the other stages take them from
// run.started.
type StageCommand struct{ kong.Plugins }

// newStageCommand returns the command with a subcommand for each stage that is
// a process.
func newStageCommand() StageCommand {
	var all StageCommand
	for _, s := range events.Stages {
		if s.Within != "" {
			continue
		}
		help := s.Summary
		if s.Kind == events.Projection && s.Replicas == events.One {
			help += " A run has one; another process waits until that one ends."
		}
		command := stages[s.Name].command
		if command == nil {
			command = WorkerStage{}
		}
		field := reflect.StructField{
			Name: "Stage", Type: reflect.TypeOf(command),
			Tag: reflect.StructTag(fmt.Sprintf(`cmd:"" name:%q help:%q`, s.Name, help)),
		}
		all.Plugins = append(all.Plugins, reflect.New(reflect.StructOf([]reflect.StructField{field})).Interface())
	}
	return all
}

// WorkerStage is a stage that takes the settings of the run from run.started.
type WorkerStage struct {
	process.StageFlags `yaml:",inline"`
}

// ExecutionStage is the execution stage, with the settings of this machine's
// sandbox.
type ExecutionStage struct {
	WorkerStage `yaml:",inline"`
	Sandbox     sandbox.Flags `embed:"" yaml:",inline" group:"Sandbox"`
}

// JudgeStage is the judge stage, with the settings of this machine's sandbox and of its
// way to the server of a judge model.
type JudgeStage struct {
	ExecutionStage `yaml:",inline"`
	Judge          judging.Flags `embed:"" yaml:",inline" group:"Judge"`
}

// ModelStage is a stage with an engine, with the settings of this machine's torch and
// of its ways to a store of checkpoints and to a model server.
type ModelStage struct {
	WorkerStage `yaml:",inline"`
	Torch       gpuworker.TorchFlags  `embed:"" yaml:",inline" group:"Engine"`
	Server      gpuworker.ServerFlags `embed:"" yaml:",inline" group:"Engine"`
	Store       gpuworker.StoreFlags  `embed:"" yaml:",inline"`
}

// Run runs the stage until the run is completed or ctx ends. When the run is
// resumed with another configuration, the stage starts again.
func (w *WorkerStage) Run(ctx context.Context, flags *kong.Context, logger *slog.Logger) error {
	return w.Work(ctx, &w.Bus, flags.Selected().Name, logger, func(ctx context.Context, a *process.Attempt) error {
		return w.work(ctx, flags, a, logger)
	})
}

// work runs the stage with the settings of an attempt until the attempt or ctx ends.
func (w *WorkerStage) work(ctx context.Context, flags *kong.Context, a *process.Attempt, logger *slog.Logger) (err error) {
	p, err := w.New(w.RunsDir, logger)
	if err != nil {
		return err
	}
	p.Bus = a.Bus
	defer func() { err = errors.Join(err, p.Close()) }()
	own, err := workerSettings(flags, flags.Selected().Target.Addr().Interface(), a.Started, logger)
	if err != nil {
		return err
	}
	r := &runner{Process: p, problems: a.Started.Problems}
	r.configure(own)
	name := flags.Selected().Name
	if !slices.ContainsFunc(r.settings.stages(), func(s events.Stage) bool { return s.Name == name }) {
		logger.Warn("the run has no such stage: its reward trains no separate Test LLM, the role is frozen, its reward needs no judge, or it has no --shadow", "stage", name, "run", w.RunName,
			"reward", r.settings.Reward.Reward, "frozen", r.settings.Models.Frozen)
		return nil
	}
	if err := r.models.FetchStart(ctx, name, a.Started); err != nil {
		return services.UnlessCanceled(ctx, err)
	}
	err = r.models.CheckFit(r.models.StageUses(name, r.Dir), func(role events.Role, demand string) {
		logger.Info("the model", "role", role, "demand", demand)
	})
	if err != nil {
		return err
	}
	g, stop := services.NewGroup(ctx)
	defer func() { err = errors.Join(err, stop()) }()
	if err := w.OpenProbe(ctx, p, g); err != nil {
		return err
	}
	logger.Info("the stage starts", "stage", name, "run", w.RunName, "attempt", a.Started.Attempt, "instance", r.Instance)
	g.Go(func(ctx context.Context) error { return stages[name].start(ctx, r, g) })
	return a.Wait(g.Context())
}

// workerSettings returns the settings in a run.started, with those above them
// that this machine's environment and command line give. own is the worker's
// command, whose flags the context has.
func workerSettings(flags *kong.Context, own any, started *events.RunStarted, logger *slog.Logger) (*RunSettings, error) {
	base, err := startedSettings(started.Config)
	if err != nil {
		return nil, fmt.Errorf("run.started of attempt %d: %w", started.Attempt, err)
	}
	var now RunSettings
	if err := settings.Resolve(&now, &base.RunSettings, envPrefix); err != nil {
		return nil, err
	}
	settings.Copy(&now, own, func(f *settings.Field) bool { return settings.OnCommandLine(flags, f.Key) })
	variable := func(key string) string { return settings.Variable(envPrefix, key) }
	if err := saved.Unchanged(&base.RunSettings, &now, variable); err != nil {
		return nil, err
	}
	if why := saved.Differing(&base.RunSettings, &now, settings.OfRun, variable); why != "" {
		logger.Warn(why + "; a stage takes it from the run")
		settings.Copy(&now, &base.RunSettings, settings.OfRun)
	}
	return &now, now.validate(variable)
}
