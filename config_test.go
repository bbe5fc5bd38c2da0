package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/events/settings"
)

// parse returns the settings of train under a command line.
func parse(args ...string) (*TrainCommand, error) {
	var cli CLI
	parser, err := newParser(&cli)
	if err != nil {
		return nil, err
	}
	_, err = parser.Parse(append([]string{"train"}, args...))
	return &cli.Train, err
}

// parseAgain returns a function that parses one command line of train after the
// other, without making a parser for each.
func parseAgain(t *testing.T) func(args ...string) error {
	t.Helper()
	var cli CLI
	parser, err := newParser(&cli)
	if err != nil {
		t.Fatal(err)
	}
	return func(args ...string) error {
		_, err := parser.Parse(append([]string{"train"}, args...))
		return err
	}
}

func mustParse(t *testing.T, args ...string) *TrainCommand {
	t.Helper()
	command, err := parse(args...)
	if err != nil {
		t.Fatal(err)
	}
	return command
}

// file writes a configuration file and returns its path.
func file(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each layer overrides the next: flag, environment, file, preset, default.
func TestLayers(t *testing.T) {
	const fromDefault = 256 // of --problems-per-step, and of the preset paper
	fromPreset := tinyProblemsPerStep(t)
	config := file(t, "problems-per-step: 33")
	for _, c := range []struct {
		name        string
		flag        bool
		environment bool
		file        bool
		preset      string
		want        int
	}{
		{"default", false, false, false, "paper", fromDefault},
		{"preset beats default", false, false, false, "tiny", fromPreset},
		{"file beats preset", false, false, true, "tiny", 33},
		{"file beats default", false, false, true, "paper", 33},
		{"environment beats file", false, true, true, "tiny", 22},
		{"environment beats preset", false, true, false, "tiny", 22},
		{"environment beats default", false, true, false, "paper", 22},
		{"flag beats environment", true, true, true, "tiny", 11},
		{"flag beats file", true, false, true, "tiny", 11},
		{"flag beats preset", true, false, false, "tiny", 11},
		{"flag beats default", true, false, false, "paper", 11},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"--preset", c.preset}
			if c.flag {
				args = append(args, "--problems-per-step", "11")
			}
			if c.environment {
				t.Setenv("CODEA1_PROBLEMS_PER_STEP", "22")
			}
			if c.file {
				args = append(args, "--config", config)
			}
			if got := mustParse(t, args...).Curriculum.ProblemsPerStep; got != c.want {
				t.Errorf("%d problems, want %d", got, c.want)
			}
		})
	}
}

func tinyProblemsPerStep(t *testing.T) int {
	t.Helper()
	s, err := presets.Settings("tiny")
	if err != nil {
		t.Fatal(err)
	}
	return s.Curriculum.ProblemsPerStep
}

// Presets combine: one sets the sizes of a run, the others change it. Their order does
// not matter, and everything else overrides them.
func TestPresetsCombine(t *testing.T) {
	for names, want := range map[string]struct {
		problems   int
		reward     string
		historical int
	}{
		"golden":        {16, "golden", 8},
		"tiny,golden":   {16, "golden", 8},
		"paper,golden":  {256, "golden", 8},
		"golden,paper":  {256, "golden", 8},
		"nobook":        {16, "a1", 0},
		"nobook,golden": {16, "golden", 0},
	} {
		got := mustParse(t, "--preset", names)
		if c := &got.Curriculum; c.ProblemsPerStep != want.problems || string(got.Reward.Reward) != want.reward || c.Historical != want.historical {
			t.Errorf("%s: %d problems, reward %s, %d historical tests", names, c.ProblemsPerStep, got.Reward.Reward, c.Historical)
		}
	}
	if got := mustParse(t, "--config", file(t, "preset: paper,nobook", "historical: 2"), "--reward", "golden"); got.Curriculum.Historical != 2 ||
		got.Curriculum.ProblemsPerStep != 256 || got.models() != events.ModelsCode {
		t.Errorf("%+v", got.Curriculum)
	}
}

func TestPresetAndFileFromTheEnvironment(t *testing.T) {
	t.Setenv("CODEA1_CONFIG", file(t, "preset: paper", "seed: 5"))
	if got := mustParse(t); got.Curriculum.ProblemsPerStep != 256 || got.Curriculum.Seed != 5 {
		t.Errorf("%d problems and seed %d, want the paper's 256 and the file's 5", got.Curriculum.ProblemsPerStep, got.Curriculum.Seed)
	}
	t.Setenv("CODEA1_PRESET", "tiny")
	if got := mustParse(t); got.Curriculum.ProblemsPerStep != tinyProblemsPerStep(t) {
		t.Errorf("%d problems, want those of the environment's preset", got.Curriculum.ProblemsPerStep)
	}
}

// The flags of train and the keys of a file are the same settings, except for the
// flags that choose a run or a file.
func TestFlagsAndKeysAreTheSame(t *testing.T) {
	var cli CLI
	parser, err := newParser(&cli)
	if err != nil {
		t.Fatal(err)
	}
	var flags, keys []string
	for _, node := range parser.Model.Children {
		for _, f := range node.Flags {
			if node.Name == "train" && !slices.Contains([]string{"help", "resume", "name", "config"}, f.Name) {
				flags = append(flags, f.Name)
				if f.Default != "" && len(f.Envs) != 1 {
					t.Errorf("--%s: environment variables %v", f.Name, f.Envs)
				}
			}
		}
	}
	for _, f := range settings.Fields(&cli.Train.Settings) {
		keys = append(keys, f.Key)
		if f.Help == "" {
			t.Errorf("%s has no help", f.Key)
		}
		if !slices.Contains([]string{"", settings.ChangeResume, settings.ChangeNever}, f.Change) {
			t.Errorf("%s: change is %q", f.Key, f.Change)
		}
		if !slices.Contains([]string{"", settings.ScopeMachine, settings.ScopePath, settings.ScopeRun}, f.Scope) {
			t.Errorf("%s: scope is %q", f.Key, f.Scope)
		}
	}
	if diff := cmp.Diff(flags, keys); diff != "" {
		t.Errorf("-flags +keys:\n%s", diff)
	}
	defaults := new(Settings)
	if err := settings.Defaults(defaults); err != nil {
		t.Fatal(err)
	}
	if err := settings.Check(defaults, func(key string) string { return key }); err != nil {
		t.Errorf("a default: %v", err)
	}
}

// The help shows the values of the chosen preset.
func TestHelpShowsThePreset(t *testing.T) {
	for preset, want := range map[string][]string{
		"tiny":  {"--problems-per-step=16 ", "--learning-rate=0.0002 "},
		"paper": {"--problems-per-step=256 ", "--learning-rate=1e-06 "},
	} {
		for _, args := range [][]string{{"train", "--preset", preset, "--help"}, {"stage", "recorder", "--preset", preset, "--help"}} {
			var out, stderr bytes.Buffer
			if code := run(t.Context(), args, &out, &stderr); code != 0 {
				t.Fatal(stderr.String())
			}
			for _, text := range want {
				if !strings.Contains(out.String(), text) {
					t.Errorf("%v does not print %s", args, text)
				}
			}
		}
	}
}

var ignoreConfig = cmp.Options{
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Config" }, cmp.Ignore()),
	cmpopts.IgnoreUnexported(TrainCommand{}),
}

// The command config prints the settings of a preset, and --config reads them.
func TestPrintedConfigurationIsTaken(t *testing.T) {
	for _, name := range presets.Names() {
		var out, stderr bytes.Buffer
		if code := run(t.Context(), []string{"config", "--preset", name}, &out, &stderr); code != 0 {
			t.Fatal(stderr.String())
		}
		path := file(t, out.String())
		if diff := cmp.Diff(mustParse(t, "--preset", name), mustParse(t, "--config", path), ignoreConfig); diff != "" {
			t.Errorf("preset %s (-preset +printed):\n%s", name, diff)
		}
		keys, comments := 0, 0
		for line := range strings.Lines(out.String()) {
			switch {
			case strings.HasPrefix(line, "# ----") || strings.TrimSpace(line) == "":
			case strings.HasPrefix(line, "# "):
				comments++
			default:
				keys++
			}
		}
		if keys != comments {
			t.Errorf("preset %s: %d comments for %d keys", name, comments, keys)
		}
	}
}

// A run saves the settings that it was started with, from all layers.
func TestSavedConfigurationIsTaken(t *testing.T) {
	t.Setenv("CODEA1_ALPHA", "0.25")
	var cli CLI
	parser, err := newParser(&cli)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"train", "--name", "r", "--problems", `a "quoted": name.jsonl`, "--learning-rate", "1.5e-7", "--no-dashboard", "--config", file(t, "tests: 5")}
	if _, err := parser.Parse(args); err != nil {
		t.Fatal(err)
	}
	text, err := configText(&cli.Train.Settings, &cli.Train.Bus)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("CODEA1_ALPHA", "")
	os.Unsetenv("CODEA1_ALPHA")
	want := cli.Train
	want.Name = "" // a file has no name of a run
	if diff := cmp.Diff(&want, mustParse(t, "--config", file(t, text)), ignoreConfig); diff != "" {
		t.Errorf("-started +saved:\n%s", diff)
	}
}

func TestConfigurationErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		want  string // after the file's name
	}{
		{"unknown key", []string{"seed: 1", "# why not", "problems-per: 3"}, `:3: unknown key "problems-per" (did you mean "problems-per-step"?); ` + "`codea1 config` prints all keys"},
		{"unlike any key", []string{"zzz: 3"}, `:1: unknown key "zzz"; ` + "`codea1 config` prints all keys"},
		{"of the command line only", []string{"resume: r"}, `:1: unknown key "resume"`},
		{"twice", []string{"seed: 1", "steps: 2", "seed: 1"}, `:3: seed is set twice`},
		{"no number", []string{"problems-per-step: many"}, `:1: problems-per-step is "many"; want a whole number`},
		{"no whole number", []string{"seed: 1", "problems-per-step: 2.5"}, `:2: problems-per-step is "2.5"; want a whole number`},
		{"no duration", []string{"call-timeout: 5"}, `:1: call-timeout is "5"; want a time such as 30s or 5m`},
		{"no boolean", []string{"no-dashboard: perhaps"}, `:1: no-dashboard is "perhaps"; want true or false`},
		{"out of bounds", []string{"", "alpha: 2"}, `:2: alpha is 2; want 0 to 1`},
		{"no such choice", []string{"prompt-style: long"}, `:1: prompt-style is "long"; want one of paper, plain`},
		{"no such recipe", []string{"reward: best"}, `:1: reward: unknown reward recipe "best"`},
		{"no value", []string{"heldout:"}, `:1: heldout: want one value`},
		{"a list", []string{"seed: [1, 2]"}, `:1: seed: want one value`},
		{"no map", []string{"- seed"}, ":1: want `key: value` lines"},
		{"no YAML", []string{"seed: 1", "  steps: 2"}, `: yaml: line 2`},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := file(t, c.lines...)
			_, err := parse("--config", path)
			if err == nil || !strings.HasPrefix(err.Error(), "configuration "+path+c.want) {
				t.Errorf("have %v\nwant configuration FILE%s", err, c.want)
			}
		})
	}
	if _, err := parse("--config", filepath.Join(t.TempDir(), "none.yaml")); err == nil || !strings.Contains(err.Error(), "none.yaml: no such file") {
		t.Errorf("a file that is not there: %v", err)
	}
	if mustParse(t, "--config", file(t, "# nothing")).Curriculum.ProblemsPerStep != tinyProblemsPerStep(t) {
		t.Error("an empty file changes something")
	}
}

// An error about a value from the environment names the variable.
func TestWrongEnvironment(t *testing.T) {
	for variable, c := range map[string][2]string{
		"CODEA1_STEPS":  {"x", `CODEA1_STEPS="x"`},
		"CODEA1_ALPHA":  {"2", "CODEA1_ALPHA is 2; want 0 to 1"},
		"CODEA1_REWARD": {"best", `CODEA1_REWARD="best"`},
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, c[0])
			if _, err := parse(); err == nil || !strings.Contains(err.Error(), c[1]) {
				t.Errorf("have %v, want %s", err, c[1])
			}
		})
	}
}

// An error about an impossible value names the flag.
func TestValuesOutOfRange(t *testing.T) {
	for args, want := range map[string]string{
		"--problems-per-step 0":  "--problems-per-step is 0; want 1 to",
		"--temperature 0":        "--temperature is 0; want more than 0",
		"--temperature NaN":      "--temperature is NaN; want more than 0",
		"--top-p 1.5":            "--top-p is 1.5; want more than 0, at most 1",
		"--call-timeout 0s":      "--call-timeout is 0s; want 1ms to 1h",
		"--keep-checkpoints 0":   "--keep-checkpoints is 0; want 1 to",
		"--reward best":          `--reward: unknown reward recipe "best"; known are a1, codescaler, coverage, cure, execverify, golden, mutation, seccoderx, secure, secure-a1, selfplay, utrl, verpo`,
		"--measure-for cure,":    `--measure-for: unknown reward recipe ""; known are a1,`,
		"--preset huge":          `preset "huge" is unknown; there are: golden, nobook, paper, selfplay, sft, tiny`,
		"--preset golden,":       `preset "" is unknown`,
		"--preset tiny,paper":    "presets tiny and paper exclude each other; leave one out",
		"--preset golden,golden": "presets golden and golden both set --reward; leave one out",
		"--train-gpus 0":         "--train-gpus is 0; want 1 to",
		"--train-gpus 2":         "--train-gpus 2 needs --engine torch",
		"--rollout-device cpu":   "--rollout-device cpu needs --engine torch",
		"--learning-rate -1":     "",
		"--resume a --name b":    "",
	} {
		if _, err := parse(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: have %v, want %s", args, err, want)
		}
	}
}

// No setting with a floating-point value takes an infinity or NaN, from any layer.
func TestNumbersAreFinite(t *testing.T) {
	parse := parseAgain(t)
	floats := 0
	for _, f := range settings.Fields(new(Settings)) {
		if _, err := presets.Read("x", []byte(f.Key+": x"), ""); err == nil || !strings.HasSuffix(err.Error(), "want a number") {
			continue // no floating-point value
		}
		floats++
		for value, inFile := range map[string]string{"inf": ".inf", "-inf": "-.inf", "NaN": ".nan"} {
			if err := parse("--" + f.Key + "=" + value); err == nil || !strings.Contains(err.Error(), "--"+f.Key+" is ") {
				t.Errorf("--%s %s: %v", f.Key, value, err)
			}
			if err := parse("--config", file(t, f.Key+": "+inFile)); err == nil || !strings.Contains(err.Error(), f.Key) {
				t.Errorf("%s: %s in a file: %v", f.Key, value, err)
			}
			t.Run(f.Key+" "+value, func(t *testing.T) {
				variable := settings.Variable(envPrefix, f.Key)
				t.Setenv(variable, value)
				if err := parse(); err == nil || !strings.Contains(err.Error(), variable+" is ") {
					t.Errorf("%s=%s: %v", variable, value, err)
				}
			})
		}
	}
	if floats == 0 {
		t.Error("no setting has a floating-point value")
	}
}

// No number or time of a run may be negative. A zero is refused where nothing works
// with it.
func TestLimitsAreBounded(t *testing.T) {
	parse := parseAgain(t)
	refused := func(key, value, bounds string) {
		t.Helper()
		if err := parse("--" + key + "=" + value); err == nil || !strings.Contains(err.Error(), "--"+key) || !strings.Contains(err.Error(), bounds) {
			t.Errorf("--%s %s: %v", key, value, err)
		}
	}
	bounded := 0
	for _, f := range settings.Fields(new(Settings)) {
		switch _, err := presets.Read("x", []byte(f.Key+": x"), ""); {
		case err == nil, f.Key == "seed": // a text; a number without a sign
			continue
		case strings.HasSuffix(err.Error(), "want a number"), strings.HasSuffix(err.Error(), "want a whole number"):
			refused(f.Key, "-1", "; want ")
		case strings.HasSuffix(err.Error(), "want a time such as 30s or 5m"):
			refused(f.Key, "-1s", "; want ")
		default:
			continue
		}
		bounded++
	}
	if bounded < 20 {
		t.Errorf("only %d settings have bounds", bounded)
	}
	for key, value := range map[string]string{"memory-mib": "0", "bus-replicas": "0", "bus-partitions": "0", "job-timeout": "0s", "call-timeout": "0s"} {
		refused(key, value, " to ")
	}
}

// A group with events that no bus takes, and an address that no bus has, are refused
// before a run has a directory.
func TestImpossibleRunsHaveNoDirectory(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "runs")
	for args, want := range map[string]string{
		"--answers 257 --suites 256":                    "--answers times --suites is 65792 suites of a group, over the limit of 65536",
		"--answers 1024 --suites 1024":                  "--answers times --suites is ",
		"--eval-answers 1024 --eval-suites 65":          "--eval-answers times --eval-suites is 66560 suites of a group, over the limit of 65536",
		"--bus nonsense":                                `--bus: "nonsense" is not the address of a bus`,
		"--bus http://127.0.0.1:1":                      "is not the address of a bus; want nats://HOST:PORT",
		"--bus kafka://127.0.0.1":                       `--bus: "127.0.0.1" is not the address of a broker`,
		"--engine torch --train-gpus 2 --reference cpu": "--reference cpu with --train-gpus 2",
		"--port 65536":                                  "--port is 65536; want 0 to 65535",
	} {
		var out, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"train", "--no-dashboard", "--runs-dir", runs}, strings.Fields(args)...), &out, &stderr)
		if code != exitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit code %d, %s, want %s", args, code, &stderr, want)
		}
		if _, err := os.Stat(runs); err == nil {
			t.Errorf("%s: there is a runs directory", args)
		}
	}
	if _, err := parse("--answers", "256", "--suites", "256", "--bus", "tls://host:1"); err != nil {
		t.Errorf("at the limit: %v", err)
	}
}

// The sandbox commands have the same bounds as a run.
func TestSandboxCommandsCheckTheirLimits(t *testing.T) {
	answers := file(t)
	for _, command := range [][]string{{"check"}, {"grade", answers, "--answers", answers}, {"serve"}} {
		var cli CLI
		parser, err := newParser(&cli)
		if err != nil {
			t.Fatal(err)
		}
		args := append(append([]string{"sandbox"}, command...), "--memory-mib", "0")
		if _, err := parser.Parse(args); err == nil || !strings.Contains(err.Error(), "--memory-mib is 0; want 64 to ") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// A run that is resumed keeps its settings, except for those that may change: where
// files and servers are, and how long the run takes.
func TestResumeHoldsTheRunToItsConfiguration(t *testing.T) {
	runs := t.TempDir()
	dir := filepath.Join(runs, "r")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rundir.Config(dir), []byte("problems-per-step: 4\nlearning-rate: 0.0003\nsteps: 7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	resume := func(args ...string) (*TrainCommand, error) {
		return parse(append([]string{"--runs-dir", runs, "--resume", "r"}, args...)...)
	}
	if got, err := resume(); err != nil || got.Curriculum.ProblemsPerStep != 4 || got.Training.LearningRate != 3e-4 || got.Curriculum.Steps != 7 {
		t.Errorf("%v, %+v", err, got)
	}
	if got, err := resume("--steps", "9", "--port", "0", "--no-dashboard"); err != nil || got.Curriculum.Steps != 9 {
		t.Errorf("%v, %+v", err, got)
	}
	for _, args := range [][]string{{"--seed", "2"}, {"--problems-per-step", "5"}, {"--alpha", "0"}, {"--code-model", "m"}, {"--problems", "p.jsonl"}} {
		if _, err := resume(args...); err == nil || !strings.Contains(err.Error(), args[0]+" is "+args[1]+", but the run was started with "+args[0]) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if _, err := resume("--config", file(t, "seed: 2")); err == nil || !strings.Contains(err.Error(), "leave out --config") {
		t.Errorf("--config: %v", err)
	}
	t.Run("environment", func(t *testing.T) {
		t.Setenv("CODEA1_LEARNING_RATE", "3e-4") // the same value in another notation
		if _, err := resume(); err != nil {
			t.Error(err)
		}
		t.Setenv("CODEA1_PROBLEMS_PER_STEP", "5")
		if _, err := resume(); err == nil || !strings.Contains(err.Error(), "CODEA1_PROBLEMS_PER_STEP is 5, but the run was started with --problems-per-step 4") {
			t.Error(err)
		}
	})
}
