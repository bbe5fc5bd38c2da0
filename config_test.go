package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codea1/consumers/dashboard"
)

// parse returns train's flags as a command line sets them.
func parse(args ...string) (*TrainCommand, error) {
	var cli CLI
	parser, err := kong.New(&cli, kong.Vars{"dashboard_address": dashboard.DefaultAddress})
	if err != nil {
		return nil, err
	}
	_, err = parser.Parse(append([]string{"train"}, args...))
	return &cli.Train, err
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

// Each layer beats those after it: flag, environment, file, preset, default.
func TestLayers(t *testing.T) {
	const fromDefault = 256 // of --problems-per-step; the preset paper has no other
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
			if got := mustParse(t, args...).ProblemsPerStep; got != c.want {
				t.Errorf("%d problems, want %d", got, c.want)
			}
		})
	}
}

func tinyProblemsPerStep(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(presets["tiny"]["problems-per-step"])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPresetAndFileFromTheEnvironment(t *testing.T) {
	t.Setenv("CODEA1_CONFIG", file(t, "preset: paper", "seed: 5"))
	if got := mustParse(t); got.ProblemsPerStep != 256 || got.Seed != 5 {
		t.Errorf("%d problems and seed %d, want the paper's 256 and the file's 5", got.ProblemsPerStep, got.Seed)
	}
	t.Setenv("CODEA1_PRESET", "tiny")
	if got := mustParse(t); got.ProblemsPerStep != tinyProblemsPerStep(t) {
		t.Errorf("%d problems, want those of the environment's preset", got.ProblemsPerStep)
	}
}

// A preset that names no flag would do nothing, silently.
func TestPresetsNameFlags(t *testing.T) {
	for name, preset := range presets {
		lines := []string{"preset: " + name}
		for key, value := range preset {
			lines = append(lines, key+": "+value)
		}
		path := file(t, lines...)
		if diff := cmp.Diff(mustParse(t, "--preset", name), mustParse(t, "--config", path), ignoreConfig); diff != "" {
			t.Errorf("preset %s (-preset +its keys in a file):\n%s", name, diff)
		}
	}
}

var ignoreConfig = cmp.Options{
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Config" }, cmp.Ignore()),
	cmpopts.IgnoreUnexported(TrainCommand{}),
}

// What config prints is what the preset means, and --config takes it.
func TestPrintedConfigurationIsTaken(t *testing.T) {
	for name := range presets {
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

// What a run saves is what it was started with, wherever that came from.
func TestSavedConfigurationIsTaken(t *testing.T) {
	t.Setenv("CODEA1_ALPHA", "0.25")
	var cli CLI
	parser, err := kong.New(&cli, kong.Vars{"dashboard_address": dashboard.DefaultAddress})
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"train", "--name", "r", "--problems", `a "quoted": name.jsonl`, "--learning-rate", "1.5e-7", "--no-dashboard", "--config", file(t, "tests: 5")}
	flags, err := parser.Parse(args)
	if err != nil {
		t.Fatal(err)
	}
	text, err := runYAML(flags)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("CODEA1_ALPHA", "")
	os.Unsetenv("CODEA1_ALPHA")
	want := cli.Train
	want.Name = "" // a file serves many runs
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
		{"no number", []string{"problems-per-step: many"}, `:1: problems-per-step: expected a valid 64 bit int but got "many"`},
		{"no whole number", []string{"seed: 1", "problems-per-step: 2.5"}, `:2: problems-per-step: expected a valid 64 bit int but got "2.5"`},
		{"no duration", []string{"call-timeout: 5"}, `:1: call-timeout: expected duration but got "5"`},
		{"no boolean", []string{"no-dashboard: perhaps"}, `:1: no-dashboard: bool value must be true`},
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
	if mustParse(t, "--config", file(t, "# nothing")).ProblemsPerStep != tinyProblemsPerStep(t) {
		t.Error("an empty file changes something")
	}
}

// Values that no run can have are named with the flag.
func TestValuesOutOfRange(t *testing.T) {
	for args, want := range map[string]string{
		"--problems-per-step 0": "--problems-per-step is 0; want 1 to",
		"--temperature 0":       "--temperature is 0; want more than 0",
		"--temperature NaN":     "--temperature is NaN; want more than 0",
		"--top-p 1.5":           "--top-p is 1.5; want more than 0, at most 1",
		"--call-timeout 0s":     "--call-timeout is 0s; want more than 0",
		"--keep-checkpoints 0":  "--keep-checkpoints is 0; want 1 to",
		"--reward best":         `--reward: unknown reward recipe "best"; known are a1, golden, selfplay`,
		"--preset huge":         `preset "huge" is unknown; there are: paper, tiny`,
		"--learning-rate -1":    "",
		"--resume a --name b":   "",
	} {
		if _, err := parse(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: have %v, want %s", args, err, want)
		}
	}
}

// A run stays what it is when it goes on; where things are and how long it
// lasts may change.
func TestResumeHoldsTheRunToItsConfiguration(t *testing.T) {
	runs := t.TempDir()
	dir := filepath.Join(runs, "r")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(configPath(dir), []byte("problems-per-step: 4\nlearning-rate: 0.0003\nsteps: 7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	resume := func(args ...string) (*TrainCommand, error) {
		var cli CLI
		parser, err := kong.New(&cli, kong.Vars{"dashboard_address": dashboard.DefaultAddress})
		if err != nil {
			t.Fatal(err)
		}
		flags, err := parser.Parse(append([]string{"train", "--runs-dir", runs, "--resume", "r"}, args...))
		if err != nil {
			return nil, err
		}
		_, err = cli.Train.directory(flags, "")
		return &cli.Train, err
	}
	if got, err := resume(); err != nil || got.ProblemsPerStep != 4 || got.LearningRate != 3e-4 || got.Steps != 7 {
		t.Errorf("%v, %+v", err, got)
	}
	if got, err := resume("--steps", "9", "--port", "0", "--no-dashboard"); err != nil || got.Steps != 9 {
		t.Errorf("%v, %+v", err, got)
	}
	for _, args := range [][]string{{"--seed", "2"}, {"--problems-per-step", "5"}, {"--alpha", "0"}, {"--code-model", "m"}, {"--problems", "p.jsonl"}} {
		if _, err := resume(args...); err == nil || !strings.Contains(err.Error(), args[0]+" is part of what a run is") {
			t.Errorf("%v: %v", args, err)
		}
	}
	if _, err := resume("--config", file(t, "seed: 2")); err == nil || !strings.Contains(err.Error(), "leave out --config") {
		t.Errorf("--config: %v", err)
	}
	t.Run("environment", func(t *testing.T) {
		t.Setenv("CODEA1_LEARNING_RATE", "3e-4") // the same, written otherwise
		if _, err := resume(); err != nil {
			t.Error(err)
		}
		t.Setenv("CODEA1_PROBLEMS_PER_STEP", "5")
		if _, err := resume(); err == nil || !strings.Contains(err.Error(), "CODEA1_PROBLEMS_PER_STEP is 5, but the run was started with --problems-per-step 4") {
			t.Error(err)
		}
	})
}
