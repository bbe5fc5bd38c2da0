// Command codea1 trains a Code LLM and a Test LLM against each other (Code-A1,
// arXiv 2603.15611) as an event-sourced pipeline on a message bus.
//
// Package main parses the command line and connects packages that do not import
// each other. It holds no other code: the body of a command is in the folder that
// the command belongs to. Start reading at train.go; stages.go lists the stages.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/lmittmann/tint"

	"codea1/consumers/dashboard/show"
	"codea1/consumers/dashboard/track"
	"codea1/consumers/evaluation"
	"codea1/consumers/execution/grading"
	"codea1/consumers/execution/sandbox"
	"codea1/consumers/execution/sandboxfusion"
	"codea1/consumers/experiment"
	"codea1/consumers/rewards"
	"codea1/events"
	"codea1/events/commandline"
	"codea1/events/deadletter"
	"codea1/events/progress"
	"codea1/events/settings"
	"codea1/gpuworker"
	"codea1/gpuworker/tiny/sft"
	"codea1/producers/problems"
	"codea1/replay/command"
	"codea1/replay/tap"
)

// SandboxCommand is `codea1 sandbox`: the sandbox without a run.
type SandboxCommand struct {
	Check sandbox.CheckCommand       `cmd:"" help:"Show how this machine isolates candidates, and try to break out."`
	Grade grading.Command            `cmd:"" help:"Run the tests of problems on answers, one JSON line each, and print which pass."`
	Serve sandboxfusion.ServeCommand `cmd:"" help:"Run programs for others over HTTP, as SandboxFusion's /run_code does."`
}

// CLI is the grammar of the command line.
type CLI struct {
	PrintVersion kong.VersionFlag `name:"version" help:"Print the version and exit."`

	LogLevel *slog.Level `help:"Lowest level of the log lines on standard error: debug, info, warn or error. Default: info for a stage, warn for other commands." placeholder:"LEVEL"`
	Profile  string      `help:"Write a CPU and a heap profile of this process to the directory, for go tool pprof." placeholder:"DIR"`

	Train      TrainCommand              `cmd:"" help:"Train both models against each other."`
	Stage      StageCommand              `cmd:"" help:"Run one stage of a run in a separate process, on a bus that all processes of the run share."`
	Doctor     DoctorCommand             `cmd:"" help:"Examine what a training needs of this machine, and say what to do."`
	DeadLetter deadletter.Command        `cmd:"" name:"deadletter" help:"List, show and retry the events that stages gave up on."`
	Config     ConfigCommand             `cmd:"" help:"Print a commented configuration file for train."`
	Problems   ProblemsCommand           `cmd:"" help:"List, show and check problem sets."`
	Sandbox    SandboxCommand            `cmd:"" help:"Check the sandbox, or use it without a run."`
	Eval       EvalCommand               `cmd:"" help:"Evaluate a checkpoint on benchmarks, or grade given answers to HumanEval+ or MBPP+ as EvalPlus does: avg@n, pass@k, majority."`
	Compare    evaluation.CompareCommand `cmd:"" help:"Compare two results of codea1 eval: intervals of the paired difference and McNemar's test."`
	Experiment experiment.Command        `cmd:"" help:"Train configurations with several seeds, and compare them: a table with intervals, and a page."`
	Mistakes   command.Mistakes          `cmd:"" help:"Read the Mistake Book of a run."`
	Replay     command.Command           `cmd:"" help:"Query, check and score again the event log of a run."`
	Dashboard  show.Command              `cmd:"" help:"Show a run on a page: one in progress, or a finished one from its log."`
	Tap        tap.Command               `cmd:"" help:"Follow the events of a run, or print those of a finished one."`
	Track      track.Command             `cmd:"" help:"Write the figures of a run for TensorBoard, W&B, MLflow or as CSV, during the run or afterwards."`
	Shadow     command.ShadowCommand     `cmd:"" help:"Reward the groups of a run under other recipes, while it trains or afterwards, and report the differences."`
	TrainSFT   sft.Command               `cmd:"" name:"train-sft" help:"Train a checkpoint of the embedded engine from text."`
	Version    VersionCommand            `cmd:"" help:"Print the version."`
	Completion commandline.Completion    `cmd:"" help:"Print what bash, zsh or fish needs to complete command lines."`
	Complete   commandline.Complete      `cmd:"" hidden:""`
}

func main() {
	// The first Ctrl-C asks for a clean stop; the second one kills the process.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	defer stop()
	// The parser of the command line makes 16 MB. With collections of so small a heap, the
	// start of a command takes a third more time.
	collect := func() {}
	if os.Getenv("GOGC") == "" {
		percent := debug.SetGCPercent(-1)
		collect = func() { debug.SetGCPercent(percent) }
	}
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr, collect))
}

// run executes a command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return execute(ctx, args, stdout, stderr, func() {})
}

// execute is run. It calls parsed before the command begins.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer, parsed func()) int {
	fail := func(err error, code int) int {
		text := err.Error() + remedy(err)
		if ctx.Err() != nil {
			text = strings.ReplaceAll(text, context.Canceled.Error(), "interrupted")
		}
		fmt.Fprintln(stderr, "codea1:", text)
		return code
	}
	output := &output{to: stdout}
	stdout = output
	var cli CLI
	cli.Replay.Recipes, cli.Shadow.Recipes = rewards.Recipes{}, rewards.Recipes{}
	cli.Replay.Retrainer = &retrainer{newLogger(stderr, slog.LevelError)}
	exit := -1
	parser, err := newParser(&cli,
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.UsageOnError(),
	)
	if err != nil {
		return fail(err, exitFailed)
	}
	if err := commandline.CheckEnvironment(parser.Model.Node, envPrefix, os.Environ()); err != nil {
		return fail(err, exitUsage)
	}
	bare := len(args) == 0
	if bare {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	switch {
	case output.err != nil: // of the help
		return fail(output.err, exitFailed)
	case exit >= 0 && bare:
		return exitUsage
	case exit >= 0:
		return exit // --help or --version
	case err != nil:
		return fail(fmt.Errorf("%w%s", err, usage(err)), exitUsage)
	}
	parsed()
	command.BindTo(ctx, (*context.Context)(nil))
	command.BindTo(stdout, (*io.Writer)(nil))
	logger := newLogger(stderr, cli.logLevel(command.Command()))
	command.Bind(logger)
	stopProfile, err := commandline.StartProfile(cli.Profile)
	if err != nil {
		return fail(err, exitFailed)
	}
	checker, closeChecker := newChecker(ctx, logger)
	command.BindTo(checker, (*problems.Checker)(nil))
	command.BindTo(checker, (*problems.Tracer)(nil))
	command.BindTo(problemSets{}, (*gpuworker.Problems)(nil))
	command.BindTo(&host{logger}, (*show.Host)(nil))
	err = errors.Join(command.Run(), closeChecker(), stopProfile())
	if output.err != nil && !errors.Is(err, output.err) {
		err = errors.Join(err, output.err)
	}
	code := exitCode(ctx, command.Command(), args, err)
	if err != nil {
		return fail(err, code)
	}
	return code
}

// usage returns where the help for a wrong command line is; nothing for one that says it
// itself.
func usage(err error) string {
	var wrong *kong.ParseError
	if !errors.As(err, &wrong) || wrong.Context == nil {
		return ""
	}
	for _, begin := range []string{"unexpected argument", "unknown flag", "missing flags", "expected "} {
		if !strings.HasPrefix(err.Error(), begin) {
			continue
		}
		name := "codea1"
		if n := wrong.Context.Selected(); n != nil {
			name = n.FullPath()
		}
		return fmt.Sprintf(" (`%s --help` shows what there is)", name)
	}
	return ""
}

// output is standard output. It keeps its first error, so that no command that
// loses its results succeeds.
type output struct {
	to  io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.to.Write(p)
	if err != nil {
		o.err = fmt.Errorf("standard output: %w", err)
	}
	return n, o.err
}

// Validate checks the bounds of all flags. Kong calls it.
func (*CLI) Validate(ctx *kong.Context) error { return settings.CheckFlags(ctx) }

// logLevel returns the lowest level that a command logs.
func (c *CLI) logLevel(command string) slog.Level {
	switch {
	case c.LogLevel != nil:
		return *c.LogLevel
	case strings.HasPrefix(command, "stage "):
		return slog.LevelInfo // a stage has no other output
	}
	return slog.LevelWarn
}

// newParser returns the parser of the command line.
func newParser(cli *CLI, options ...kong.Option) (*kong.Kong, error) {
	cli.Stage = newStageCommand()
	cli.DeadLetter.List.Log = command.DeadLetters
	cli.Experiment.Host = &experimentHost{problems: map[string]problemCounts{}}
	options = append(options,
		kong.Name("codea1"),
		tap.Vars,
		kong.Vars{"version": build()},
		kong.Description("Adversarial reinforcement learning of code and tests as an event-sourced pipeline."),
		kong.PostBuild(func(k *kong.Kong) error {
			base, err := presets.Settings(defaultPreset)
			if err != nil {
				return err
			}
			configure(k.Model.Node, base)
			describe(k.Model.Node)
			return nil
		}),
	)
	return kong.New(cli, options...)
}

// configure lets the environment set the flags of the commands that take part in a
// run, and makes the values of a preset their defaults.
func configure(root *kong.Node, base *Settings) {
	settings.Environment(root.Flags, envPrefix)
	values := settings.Values(base)
	for _, node := range root.Children {
		switch node.Name {
		case "problems":
			for _, n := range node.Children {
				settings.Layer(n.Flags, &base.Sampling)
			}
		case "train", "stage", "deadletter", "doctor", "tap", "track", events.StageShadow, events.StageDashboard:
			_ = kong.Visit(node, func(v kong.Visitable, next kong.Next) error {
				if n, ok := v.(*kong.Node); ok {
					flags := n.Flags
					if node.Name == events.StageShadow { // its recipes are not that of the run
						flags = slices.DeleteFunc(slices.Clone(flags), func(f *kong.Flag) bool { return f.Name == "reward" || f.Name == "alpha" })
					}
					settings.Environment(flags, envPrefix)
					settings.SetDefaults(flags, values)
				}
				return next(nil)
			})
		}
	}
}

func newLogger(w io.Writer, level slog.Level) *slog.Logger {
	if progress.IsTerminal(w) {
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, NoColor: os.Getenv("NO_COLOR") != ""}))
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// VersionCommand prints the version.
type VersionCommand struct{}

// Run prints the version of this build and of Go.
func (VersionCommand) Run(out io.Writer) error {
	_, err := fmt.Fprintln(out, build())
	return err
}

// build returns the module version and the commit of this build, as far as Go
// recorded them.
func build() string {
	version, commit := "devel", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; v != "" && v != "(devel)" {
			version = v
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = " " + s.Value
			}
		}
	}
	return fmt.Sprintf("codea1 %s%s (%s %s/%s)", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
