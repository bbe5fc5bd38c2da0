package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"

	"codea1/consumers/evaluation"
	"codea1/consumers/execution/benchmark"
	"codea1/consumers/execution/sandbox"
	"codea1/consumers/rewards"
	"codea1/consumers/scoring"
	"codea1/events"
	"codea1/events/commandline"
	"codea1/events/connect"
	"codea1/events/rundir"
	"codea1/events/rundir/saved"
	"codea1/events/settings"
	"codea1/gpuworker"
	"codea1/gpuworker/models"
	"codea1/gpuworker/openai"
	"codea1/replay/eventlog"
)

// EvalCommand is `codea1 eval`: the figures of a model's answers, or of given ones, to
// the problems of a benchmark.
type EvalCommand struct {
	scoring.Flags
	EvalSettings
}

// evalMemoryMiB is EvalPlus's limit. Some ground truths need more than a training
// gives an answer.
const evalMemoryMiB = 4096

// BeforeReset makes the limits of EvalPlus the defaults of the flags.
func (*EvalCommand) BeforeReset(ctx *kong.Context) error {
	var base sandbox.Flags
	if err := settings.Defaults(&base); err != nil {
		return err
	}
	base.MemoryMiB = evalMemoryMiB
	settings.Layer(ctx.Flags(), &base)
	return nil
}

// Run samples and grades answers, or grades given ones, and prints the figures.
func (c *EvalCommand) Run(ctx context.Context, flags *kong.Context, out io.Writer, logger *slog.Logger) error {
	if c.SamplesFile == "" && !c.GroundTruths {
		return c.sample(ctx, flags, out, logger)
	}
	if c.First == "" {
		return errors.New("name the benchmark")
	}
	s := &scoring.Scoring{Sandbox: &c.Sandbox, JSON: c.JSON, Out: out, Progress: os.Stderr, Logger: logger}
	return s.Grade(ctx, &scoring.Given{Benchmarks: append([]string{c.First}, c.Benchmarks...), Samples: c.SamplesFile, Results: c.Out})
}

// EvalSettings are the settings of an evaluation that those of a run have, too. The
// defaults of sampling are the paper's.
type EvalSettings struct {
	RunsDir     string                `yaml:"runs-dir" help:"Directory that holds the run directories." default:"runs" placeholder:"DIR"`
	Temperature float64               `yaml:"temperature" help:"Sampling temperature." default:"0.7" above:"0" max:"100"`
	TopP        float64               `yaml:"top-p" help:"Nucleus sampling: sample from the most likely tokens whose probabilities add up to this." default:"0.95" above:"0" max:"1"`
	CodeTokens  int                   `yaml:"code-tokens" help:"Most tokens of an answer. Default: as in the run or the preset." min:"1" max:"1048576" default:"2048"`
	TestTokens  int                   `yaml:"test-tokens" help:"Most tokens of a suite. Default: as in the run or the preset." min:"1" max:"1048576" default:"2048"`
	Seed        uint64                `yaml:"seed" help:"Root of every random choice: the same seed gives the same answers." default:"1"`
	Prompts     gpuworker.PromptFlags `embed:"" yaml:",inline"`
	Engine      gpuworker.EngineFlags `embed:"" yaml:",inline" group:"Engine"`
	Bus         connect.Flags         `embed:"" yaml:",inline" group:"Message bus"`
	Sandbox     sandbox.Flags         `embed:"" yaml:",inline" group:"Sandbox"`
}

// ownDefaults are the settings that an evaluation takes from its flags, also where the
// user does not give them.
var ownDefaults = map[string]bool{"runs-dir": true, "temperature": true, "top-p": true, "seed": true, "memory-mib": true}

// builtin is the name of the embedded model.
const builtin = "builtin"

// Validate checks the flags.
func (c *EvalCommand) Validate(ctx *kong.Context) error {
	given := func(flags ...string) string {
		for _, flag := range flags {
			if settings.OnCommandLine(ctx, flag) {
				return "--" + flag
			}
		}
		return ""
	}
	if err := c.Check(given, openai.IsURL(c.First)); err != nil {
		return err
	}
	return settings.Check(&c.EvalSettings, settings.SourceOf(ctx))
}

// sample evaluates a checkpoint.
func (c *EvalCommand) sample(ctx context.Context, flags *kong.Context, out io.Writer, logger *slog.Logger) error {
	begun, err := c.begin(ctx, flags, logger)
	if err != nil {
		return err
	}
	gathered, err := gather(ctx, begun.Dir)
	if err != nil {
		return err
	}
	rows, err := benchmark.Read(rundir.Benchmark(begun.Dir))
	if err != nil {
		return err
	}
	if gathered.Ended() < len(rows) {
		train := &TrainCommand{Settings: *begun.Settings, begun: begun, Resume: begun.Dir}
		if err := train.Run(ctx, flags, io.Discard, logger); err != nil {
			return fmt.Errorf("%w; codea1 eval --resume %s continues", err, commandline.Word(begun.Dir))
		}
		if gathered, err = gather(context.WithoutCancel(ctx), begun.Dir); err != nil {
			return err
		}
	}
	if done := gathered.Ended(); done < len(rows) {
		return fmt.Errorf("stopped after %d of %d problems; codea1 eval --resume %s continues: %w", done, len(rows), commandline.Word(begun.Dir), cmp.Or(ctx.Err(), context.Canceled))
	}
	if e := &begun.Engine; e.Sampler == gpuworker.SamplerOpenAI && !c.JSON {
		fmt.Fprintf(out, "%s at %s\n", e.Model, e.Server)
	}
	s := &scoring.Scoring{Sandbox: &begun.Sandbox, JSON: c.JSON, Mutants: c.Mutants, Out: out, Progress: flags.Stderr, Logger: logger}
	e := &scoring.Evaluation{Dir: begun.Dir, Rows: rows, Gathered: gathered}
	switch {
	case exists(rundir.Published(begun.Dir)):
		return s.Published(ctx, e, completes(begun.Settings))
	case begun.Evaluation.EvalAnswers == 0:
		return s.Tests(ctx, e, begun.Evaluation.EvalSuites, begun.Curriculum.Tests)
	case begun.Evaluation.EvalAnswerSuites > 0:
		return s.Answers(ctx, e, begun.Curriculum.Tests)
	}
	return s.Answers(ctx, e, 0)
}

// begin returns the run to continue, or makes the directory of a new one.
func (c *EvalCommand) begin(ctx context.Context, flags *kong.Context, logger *slog.Logger) (*begunRun, error) {
	given := func(f *settings.Field) bool {
		_, _, given := settings.Given(flags, f.Key)
		return given
	}
	if c.Resume != "" {
		dir, err := rundir.Find(c.RunsDir, c.Resume)
		if err != nil {
			return nil, err
		}
		begun, err := openBegun(ctx, dir)
		if err != nil {
			return nil, err
		}
		if err := begun.checkName(); err != nil {
			return nil, err
		}
		if _, err := os.Stat(rundir.Benchmark(dir)); begun == nil || err != nil {
			return nil, fmt.Errorf("%s is no evaluation: it has no %s", dir, filepath.Base(rundir.Benchmark(dir)))
		}
		now := *begun.Settings
		settings.Copy(&now, &c.EvalSettings, given)
		if err := saved.Unchanged(&begun.RunSettings, &now.RunSettings, settings.SourceOf(flags)); err != nil {
			return nil, err
		}
		begun.Settings = &now
		return begun, begun.repair(logger)
	}
	onServer, preset := openai.IsURL(c.First), c.Preset
	if _, _, given := settings.Given(flags, "preset"); onServer && !given {
		preset = "paper" // the models of servers are tuned for instructions
	}
	s, err := presets.Settings(preset)
	if err != nil {
		return nil, err
	}
	role := events.Role(c.Role)
	model, err := c.checkpoint(ctx, s, c.First, role, c.At)
	if err != nil {
		return nil, err
	}
	if c.TestModel != "" {
		if err := c.addTestModel(ctx, s); err != nil {
			return nil, err
		}
	}
	settings.Copy(s, &c.EvalSettings, func(f *settings.Field) bool { return ownDefaults[f.Key] || given(f) })
	s.Engine.Sampler = gpuworker.SamplerEngine
	if onServer {
		s.Engine.Sampler, s.Engine.Server, s.Engine.Engine = gpuworker.SamplerOpenAI, c.First, gpuworker.EngineTiny
	}
	s.Curriculum.Steps, s.Curriculum.Epochs, s.Curriculum.ProblemsPerStep, s.Curriculum.TrainProblems = 0, 0, 1, 0
	s.Evaluation = evaluation.Flags{}
	samples := c.Samples
	if c.Greedy {
		samples, s.Sampling.TopK, s.Sampling.TopP = 1, 1, 1
	}
	if role == events.RoleCode {
		s.Models.CodeModel = model
		if c.TestModel == "" {
			s.Reward.Reward = rewards.NameGolden // without a Test LLM
		} else {
			s.Evaluation.EvalAnswerSuites, s.Curriculum.Suites, s.Curriculum.Tests = c.Suites, c.Suites, c.Tests
		}
		s.Evaluation.EvalAnswers = cmp.Or(samples, 32)
		s.Curriculum.Answers = s.Evaluation.EvalAnswers
	} else {
		s.Models.TestModel = model
		if s.Engine.Engine == gpuworker.EngineTorch {
			s.Models.CodeModel = model // samples nothing
		}
		s.Evaluation.EvalSuites, s.Curriculum.Tests = cmp.Or(samples, 1), c.Tests
		s.Curriculum.Answers, s.Curriculum.Suites = 1, s.Evaluation.EvalSuites
		if c.Rounds > 0 {
			s.Evaluation.EvalRounds, s.Curriculum.Tests = true, c.Rounds
			if s.Sampling.PromptStyle == gpuworker.StylePaper && s.Sampling.TestPrompt == "" {
				s.Sampling.TestPrompt = gpuworker.RoundPrompt
			}
		}
	}
	s.Dashboard.Off = true
	if err := s.validate(settings.SourceOf(flags)); err != nil {
		return nil, err
	}
	switch {
	case onServer:
		if err := models.ProbeServer(ctx, &s.Engine, logger); err != nil {
			return nil, err
		}
	case s.Engine.Engine != gpuworker.EngineTorch:
		if err := s.modelConfig().CheckTraining("", func(events.Role, string) {}); err != nil {
			return nil, err
		}
	}
	return c.create(ctx, s, logger)
}

// create makes the directory of a new evaluation. The benchmark is read first, so that a
// mistake in it leaves nothing behind.
func (c *EvalCommand) create(ctx context.Context, s *Settings, logger *slog.Logger) (*begunRun, error) {
	maker := benchmark.Maker{Sets: evalSets{}, Sandbox: &c.Sandbox, Role: events.Role(c.Role), Completion: completes(s), Logger: logger}
	text, err := maker.Make(ctx, c.Benchmarks)
	if err != nil {
		return nil, err
	}
	var published []byte
	if maker.Published != "" {
		if c.TestModel != "" {
			return nil, fmt.Errorf("benchmark %s has no functions that a Test LLM could test: leave out --test-model", maker.Published)
		}
		if published, err = os.ReadFile(maker.Published); err != nil {
			return nil, err
		}
		if c.Prompts.CodePrompt == "" {
			s.Sampling.CodePrompt = "{{.Question}}"
		}
	}
	now := time.Now()
	name := cmp.Or(c.Name, "eval-"+now.Format("20060102-150405"))
	dir, err := filepath.Abs(filepath.Join(s.RunsDir, name))
	if err != nil {
		return nil, err
	}
	s.Data.Problems, s.Data.Heldout = rundir.Benchmark(dir), rundir.Benchmark(dir)
	config, err := configText(s, &s.Bus)
	if err != nil {
		return nil, err
	}
	if dir, err = rundir.Create(s.RunsDir, name, config, now); err != nil {
		return nil, err
	}
	if published != nil { // first: --resume needs the file of Benchmark
		err = rundir.WriteFile(rundir.Published(dir), published, rundir.FileMode)
	}
	if err == nil {
		err = rundir.WriteFile(rundir.Benchmark(dir), text, rundir.FileMode)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &begunRun{s, saved.Run{Dir: dir}}, nil
}

// completes reports whether the model continues the text of a prompt.
func completes(s *Settings) bool {
	return s.Engine.Sampler == gpuworker.SamplerOpenAI && s.Engine.ServerPrompt == gpuworker.PromptCompletion
}

// checkpoint returns the directory of a checkpoint that the user names. Of a run, it
// also takes over the settings of the model and of its prompts.
func (c *EvalCommand) checkpoint(ctx context.Context, s *Settings, name string, role events.Role, version *int) (string, error) {
	if name == builtin || openai.IsURL(name) {
		return "", nil
	}
	run, err := rundir.Find(c.RunsDir, name)
	switch {
	case err == nil:
	case exists(filepath.Join(name, "config.json")):
		return filepath.Abs(name)
	case c.Engine.Engine == gpuworker.EngineTorch:
		return name, nil // on the hub
	default:
		return "", commandline.Wrong(fmt.Errorf("checkpoint %s: it is neither %s, nor a run, nor a directory with config.json", name, builtin))
	}
	begun, err := openBegun(ctx, run)
	if err != nil {
		return "", err
	}
	if begun == nil {
		return "", fmt.Errorf("run %s: %w: %s", run, saved.ErrNoSettings, saved.FromBus)
	}
	s.Engine, s.Sampling.PromptFlags = begun.Engine, begun.Sampling.PromptFlags
	s.Curriculum.CodeTokens, s.Curriculum.TestTokens, s.Curriculum.Tests = begun.Curriculum.CodeTokens, begun.Curriculum.TestTokens, begun.Curriculum.Tests
	if begun.models().Shared() && s.Sampling.TestPrompt == "" { // the model has learnt to write tests without an answer
		if s.Sampling.TestPrompt, err = s.Sampling.BlindTemplate(); err != nil {
			return "", err
		}
	}
	role = begun.models().Policy(role)
	return models.VersionDir(run, role, version)
}

// addTestModel sets the model that writes suites about the answers.
func (c *EvalCommand) addTestModel(ctx context.Context, s *Settings) (err error) {
	other := *s
	if s.Models.TestModel, err = c.checkpoint(ctx, &other, c.TestModel, events.RoleTest, nil); err != nil {
		return fmt.Errorf("--test-model: %w", err)
	}
	if other.Engine.Engine != s.Engine.Engine || other.Sampling.PromptStyle != s.Sampling.PromptStyle {
		return fmt.Errorf("--test-model %s has the engine %s and the prompt style %s, the first checkpoint %s and %s: evaluate models of one kind",
			c.TestModel, other.Engine.Engine, other.Sampling.PromptStyle, s.Engine.Engine, s.Sampling.PromptStyle)
	}
	s.Sampling.TestPrompt, s.Curriculum.TestTokens = other.Sampling.TestPrompt, other.Curriculum.TestTokens
	return nil
}

// gather reads the log of an evaluation.
func gather(ctx context.Context, dir string) (*evaluation.Gathered, error) {
	g := new(evaluation.Gathered)
	_, err := eventlog.VisitRun(ctx, dir, evaluation.GatherTypes, func(_ *eventlog.Record, e *events.Event) error {
		g.Add(e)
		return nil
	})
	return g, err
}
