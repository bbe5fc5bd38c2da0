package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"codea1/consumers/dashboard"
	"codea1/consumers/dashboard/track"
	"codea1/consumers/evaluation"
	"codea1/consumers/execution/judging"
	"codea1/consumers/execution/sandbox"
	"codea1/consumers/rewards"
	"codea1/events"
	"codea1/events/connect"
	"codea1/events/rundir/saved"
	"codea1/events/settings"
	"codea1/events/stage"
	"codea1/gpuworker"
	"codea1/gpuworker/checkpoint/objects"
	"codea1/gpuworker/models"
	"codea1/producers/curriculum"
	"codea1/producers/problems"
	"codea1/replay/eventlog"
)

// envPrefix begins the name of every environment variable that sets a flag.
const envPrefix = "CODEA1_"

const defaultPreset = "tiny"

// RunSettings are the settings of a run. The commands that begin a run have them:
// train, and the recorder of a run whose stages are separate processes. Each
// setting is a flag, an environment variable and a key of a configuration file. A
// flag overrides the environment, the environment the file, the file the preset,
// and the preset the default.
type RunSettings struct {
	Preset  string `yaml:"preset" help:"Values to start from: tiny (the embedded engine on a laptop) or paper; after a comma, changes to them: golden (reward from golden tests, no Test LLM), selfplay (one model in both roles), nobook (no Mistake Book), sft (no training, only the evaluation of the models). golden alone means tiny,golden." default:"tiny" change:"resume"`
	RunsDir string `yaml:"runs-dir" help:"Directory that holds the run directories." default:"runs" placeholder:"DIR" change:"resume" scope:"machine"`

	Data       problems.Flags          `embed:"" yaml:",inline"`
	Models     gpuworker.ModelFlags    `embed:"" yaml:",inline"`
	Engine     gpuworker.EngineFlags   `embed:"" yaml:",inline" group:"Engine"`
	KeepTokens int                     `yaml:"keep-tokens" help:"Newest trained steps whose token ids and log-probs the log keeps; 0 for all. They take most of the log's space, and a step cannot be retrained without them." default:"0" min:"0" max:"10000000" change:"resume"`
	Bus        connect.Flags           `embed:"" yaml:",inline" group:"Message bus"`
	Delivery   stage.Flags             `embed:"" yaml:",inline" group:"Message bus"`
	Sandbox    sandbox.Flags           `embed:"" yaml:",inline" group:"Sandbox"`
	Judge      judging.Flags           `embed:"" yaml:",inline" group:"Judge"`
	Curriculum curriculum.Flags        `embed:"" yaml:",inline"`
	Sampling   gpuworker.SamplingFlags `embed:"" yaml:",inline" group:"Sampling"`
	Reward     rewards.Flags           `embed:"" yaml:",inline" group:"Reward"`
	Training   gpuworker.TrainingFlags `embed:"" yaml:",inline"`
	Evaluation evaluation.Flags        `embed:"" yaml:",inline" group:"Evaluation"`
}

// Settings are all settings of train, and all keys of a configuration file.
type Settings struct {
	RunSettings `yaml:",inline"`

	Budget    time.Duration   `yaml:"budget" help:"Time that this attempt at the run may take, with the evaluation at its end; 0 for no limit. Learning rates follow the planned steps all the same." default:"0s" min:"0s" change:"resume" group:"Process"`
	Port      int             `yaml:"port" help:"Loopback port of the embedded NATS server; 0 for 4222, or any free one if that is taken." default:"0" min:"0" max:"65535" change:"resume" group:"Process"`
	Dashboard dashboard.Flags `embed:"" yaml:",inline" group:"Process"`
	Tracking  track.Flags     `embed:"" yaml:",inline" group:"Process"`
}

//go:embed preset_*.yaml
var presetFiles embed.FS

// presets override the defaults, which are the paper's values.
var presets = settings.Presets[Settings]{Files: presetFiles, Base: []string{"tiny", "paper"}, Default: defaultPreset}

// startedSettings returns the settings in the text of a run.started. Settings
// with scope machine keep their defaults: a sender on the bus cannot change the
// programs on this machine or weaken their confinement.
func startedSettings(config string) (*Settings, error) {
	s, err := presets.Read("in run.started", []byte(config), "")
	if err != nil {
		return nil, err
	}
	defaults := new(Settings)
	if err := settings.Defaults(defaults); err != nil {
		return nil, err
	}
	settings.Copy(s, defaults, settings.OfMachine)
	return s, nil
}

// configText returns settings as a configuration file, without the user and the
// password in the address of the bus.
func configText(s any, bus *connect.Flags) (string, error) {
	address := bus.URL
	bus.URL = connect.PublicURL(bus.URL)
	defer func() { bus.URL = address }()
	var b strings.Builder
	err := settings.Write(&b, s)
	return b.String(), err
}

// steps returns the training steps of the run.
func (s *RunSettings) steps(problems int) int { return s.Curriculum.PlannedSteps(problems) }

// schedule returns the configuration of the curriculum.
func (s *RunSettings) schedule() (curriculum.Config, error) {
	needs, err := s.Reward.Needs()
	if err != nil {
		return curriculum.Config{}, err
	}
	return curriculum.Config{
		Flags: s.Curriculum, Golden: needs.Golden, Cross: needs.Cross, Probes: events.JoinProbes(needs.Probes...),
		Judges: events.JoinJudges(needs.Judges...), Models: s.models(),
	}, nil
}

// stages returns the stages of the run, with the optional ones that it asks for.
func (s *RunSettings) stages() []events.Stage {
	stages := s.models().Stages()
	if s.Reward.Shadow != "" {
		shadow, _ := s.models().Stage(events.StageShadow)
		stages = append(stages, shadow)
	}
	return stages
}

// models returns the models of the run.
func (s *RunSettings) models() events.Models { return s.Reward.Models(events.Role(s.Models.Frozen)) }

func (s *RunSettings) evaluation() evaluation.Config {
	suites, onAnswers := s.Evaluation.EvalSuites, s.Evaluation.EvalAnswerSuites
	if s.models().WithoutTest() {
		suites, onAnswers = 0, 0
	}
	return evaluation.Config{
		Answers: s.Evaluation.EvalAnswers, OnAnswers: onAnswers, Suites: suites, Tests: s.Curriculum.Tests, Rounds: s.Evaluation.EvalRounds,
		Temperature: s.Curriculum.Temperature, CodeTokens: s.Curriculum.CodeTokens, TestTokens: s.Curriculum.TestTokens,
	}
}

// trains reports whether the run has steps.
func (s *RunSettings) trains() bool { return s.steps(s.Curriculum.ProblemsPerStep) > 0 }

// modelConfig returns the models of the run and the work that it has for them.
func (s *RunSettings) modelConfig() *models.Config {
	c := &s.Curriculum
	return &models.Config{
		Models: s.models(), Trains: s.trains(), Engine: s.Engine, Flags: s.Models, Sampling: s.Sampling, Training: s.Training,
		Step: models.Step{
			Problems: c.ProblemsPerStep, Answers: c.Answers, Suites: c.Suites, CodeTokens: c.CodeTokens, TestTokens: c.TestTokens,
			Temperature: c.Temperature, MaxStaleness: c.MaxStaleness,
		},
	}
}

// validate returns an error about the first setting whose value is impossible.
// source returns the flag, variable or file that sets a key.
func (s *RunSettings) validate(source func(key string) string) error {
	if err := settings.Check(s, source); err != nil {
		return err
	}
	if frozen := s.Models.Frozen; frozen != "" && !s.models().Frozen(events.Role(frozen)) {
		return fmt.Errorf("--frozen %s: the reward %s has no separate Test LLM; freeze a model of a run with two models", frozen, s.Reward.Reward)
	}
	if err := s.modelConfig().Validate(); err != nil {
		return err
	}
	if err := s.Judge.Check(s.Reward.Judges()); err != nil {
		return err
	}
	if s.Bus.URL != connect.Embedded {
		if err := s.Bus.ValidateURL(); err != nil {
			return err
		}
	}
	if s.Models.CheckpointStore != "" {
		if _, err := objects.ParseAddress(s.Models.CheckpointStore); err != nil {
			return fmt.Errorf("--checkpoint-store %w", err)
		}
	}
	for _, group := range []struct {
		answers, suites string
		n               int
	}{
		{"answers", "suites", s.Curriculum.Answers * s.Curriculum.Suites},
		{"eval-answers", "eval-suites", s.Evaluation.EvalAnswers * s.Evaluation.EvalSuites},
		{"eval-answers", "eval-answer-suites", s.Evaluation.EvalAnswers * s.Evaluation.EvalAnswerSuites},
	} {
		if group.n > events.MaxItems {
			return fmt.Errorf("--%s times --%s is %d suites of a group, over the limit of %d; lower one of them", group.answers, group.suites, group.n, events.MaxItems)
		}
	}
	return s.modelConfig().ValidateTraining(s.steps(s.Curriculum.ProblemsPerStep))
}

// ConfigCommand prints a configuration file.
type ConfigCommand struct {
	Preset string `help:"Preset whose values are printed, or several, as for train." default:"tiny"`
}

// Run prints every key with its comment and the preset's value.
func (c *ConfigCommand) Run(out io.Writer) error {
	s, err := presets.Settings(c.Preset)
	if err != nil {
		return err
	}
	return settings.Write(out, s)
}

// begunRun is a run directory with the settings of its run.
type begunRun struct {
	*Settings
	saved.Run
}

// runKind reads the settings of runs.
var runKind = saved.Kind[Settings]{
	File:    func(name string, text []byte) (*Settings, error) { return presets.Read(name, text, "") },
	Started: startedSettings,
	OfRun:   func(s *Settings) any { return &s.RunSettings },
}

// openBegun returns the run in a directory; nil without a configuration and a log.
// It refuses a configuration of another run than that of the log.
func openBegun(ctx context.Context, dir string) (*begunRun, error) {
	started, name, err := eventlog.LastStarted(ctx, dir)
	if err != nil {
		return nil, err
	}
	run, err := readBegun(dir, started)
	if run != nil {
		run.Name = name
	}
	return run, err
}

// readBegun returns the run in a directory. started is the log's newest
// run.started; nil for a log without one.
func readBegun(dir string, started *events.RunStarted) (*begunRun, error) {
	s, run, err := runKind.Read(dir, started)
	if run == nil {
		return nil, err
	}
	return &begunRun{s, *run}, err
}

// checkName refuses to continue a run in a directory with another name.
func (b *begunRun) checkName() error {
	if b == nil {
		return nil
	}
	return b.CheckName()
}

// repair writes a configuration file again that could not be used.
func (b *begunRun) repair(logger *slog.Logger) error {
	text, err := configText(b.Settings, &b.Bus)
	if err != nil {
		return err
	}
	return b.Repair(b.Settings, text, logger)
}
