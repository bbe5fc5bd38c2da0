package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/events/rundir/saved"
	"codea1/events/settings"
	"codea1/replay/eventlog/eventlogtest"
)

// startedRun returns a run.started with settings that are not the defaults, and their
// text.
func startedRun(t *testing.T) (*events.RunStarted, string) {
	t.Helper()
	s := &mustParse(t, "--steps", "4", "--seed", "7", "--answers", "3", "--sandboxes", "2", "--python", "/opt/python").Settings
	text, err := configText(s, &s.Bus)
	if err != nil {
		t.Fatal(err)
	}
	checkpoint := events.Checkpoint{URI: "file:///start", SHA256: strings.Repeat("0", 64)}
	return &events.RunStarted{
		Attempt: 1, Steps: 4, Build: "test", Config: text, ProblemSet: "builtin:train", Problems: 960, Code: checkpoint, Test: checkpoint,
	}, text
}

// configured returns a run directory with a configuration file.
func configured(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(rundir.Config(dir), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// edited returns the text of settings of which one has another value, and the value.
func edited(t *testing.T, s *Settings, key string) (text, value string) {
	t.Helper()
	for _, value := range []string{
		"true", "2", "3", "256", "0.25", "0.75", "2s", "paper", "plain", "confined", "skip", "golden", "torch", "openai", "completion", "sampled", "cpu", "/elsewhere", "{{.Question}}", "test",
	} {
		if key == "preset" && value != "paper" {
			continue // no preset
		}
		changed := *s
		if settings.Set(&changed, key, value) != nil || len(settings.Differences(s, &changed, func(*settings.Field) bool { return true })) != 1 {
			continue
		}
		text, err := configText(&changed, &changed.Bus)
		if err != nil {
			t.Fatal(err)
		}
		return text, value
	}
	t.Fatalf("no other value for %s", key)
	return "", ""
}

// Each setting in the file of a run is edited. A setting of the run is refused with its
// name, both values and the remedy. A setting of the machine, or one that a resume may
// change, is accepted.
func TestEditedConfiguration(t *testing.T) {
	t.Parallel()
	started, text := startedRun(t)
	begun, err := presets.Read("x", []byte(text), "")
	if err != nil {
		t.Fatal(err)
	}
	refused, accepted := 0, 0
	for _, f := range settings.Fields(begun) {
		changed, value := edited(t, begun, f.Key)
		dir := configured(t, changed)
		got, err := readBegun(dir, started)
		if f.Change == settings.ChangeResume || f.Scope == settings.ScopeMachine {
			accepted++
			if err != nil || got.Damage != nil {
				t.Errorf("%s, from %s to %s: %v", f.Key, f, value, err)
				continue
			}
			for _, now := range settings.Fields(got.Settings) {
				if now.Key == f.Key && now.String() != value {
					t.Errorf("%s is %s, not that of the file, %s", f.Key, now, value)
				}
			}
			continue
		}
		refused++
		want := fmt.Sprintf("%s in %s is %s, but the run was started with --%s %s, which cannot change: correct the file, or delete it",
			f.Key, rundir.Config(dir), value, f.Key, f)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("have %v\nwant %s", err, want)
		}
	}
	if refused < 30 || accepted < 30 {
		t.Errorf("%d settings are refused and %d accepted: is the table complete?", refused, accepted)
	}
	two := strings.NewReplacer("\nseed: 7\n", "\nseed: 8\n", "\nanswers: 3\n", "\nanswers: 2\n").Replace(text)
	if _, err := readBegun(configured(t, two), started); err == nil || !strings.Contains(err.Error(), "seed 7; answers in ") {
		t.Errorf("two settings: %v", err)
	}
}

// A file that is cut at any byte never changes the run: it is refused, or
// written again from the log.
func TestDamagedConfiguration(t *testing.T) {
	t.Parallel()
	started, text := startedRun(t)
	whole, err := readBegun(configured(t, text), started)
	if err != nil || whole.Damage != nil {
		t.Fatalf("%v, %v", err, whole)
	}
	again, damaged, refused := "", 0, 0
	dir := t.TempDir()
	check := func(what string) {
		t.Helper()
		got, err := readBegun(dir, started)
		if err != nil {
			refused++
			if !strings.Contains(err.Error(), "delete the file: the next start writes it again from the log") &&
				!strings.Contains(err.Error(), "correct the file, or delete it: the next start") {
				t.Errorf("%s: %v", what, err)
			}
			return
		}
		if why := saved.Differing(&whole.RunSettings, &got.RunSettings, settings.Fixed, func(key string) string { return key }); why != "" {
			t.Errorf("%s: %s", what, why)
		}
		if got.Damage == nil {
			return // the cut lost nothing of the run
		}
		damaged++
		if got.Curriculum.Steps != 4 || got.Sandbox.Sandboxes != 0 || got.Sandbox.Python != "" {
			t.Errorf("%s: %d steps, sandbox %+v: want the run of the log on a machine with defaults", what, got.Curriculum.Steps, got.Sandbox)
		}
		if again != "" {
			return
		}
		if err := got.repair(slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		repaired, err := readBegun(dir, started)
		if err != nil || repaired.Damage != nil || repaired.Curriculum.Steps != 4 {
			t.Fatalf("after the repair: %v", err)
		}
		again = what
	}
	write := func(text string) {
		t.Helper()
		again = ""
		if err := os.RemoveAll(rundir.Config(dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(rundir.Config(dir), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	every, places := 4, 0
	if thorough() {
		every = 1
	}
	// A cut inside of the last setting of the run loses no key, and may change the value.
	fields := settings.Fields(new(RunSettings))
	last := strings.Index(text, "\n"+fields[len(fields)-1].Key+": ") + 1
	after := last + strings.Index(text[last:], "\n")
	for i := range text {
		if inside := last < i && i < after; !inside {
			if i > 0 && text[i-1] != '\n' && i%23 != 0 {
				continue // each line, and places inside of lines
			}
			if places++; places%every != 0 {
				continue
			}
		}
		write(text[:i])
		if places%40 != 0 {
			again = "repairs of a few cuts are enough"
		}
		check(fmt.Sprintf("cut after %q", text[max(0, i-20):i]))
	}
	if damaged < 100/every || refused == 0 {
		t.Errorf("%d cuts were repaired, %d refused", damaged, refused)
	}
	for what, damage := range map[string]func() error{
		"a directory": func() error { return errors.Join(os.Remove(rundir.Config(dir)), os.Mkdir(rundir.Config(dir), 0o755)) },
		"deleted":     func() error { return os.Remove(rundir.Config(dir)) },
		"zeros":       func() error { return os.WriteFile(rundir.Config(dir), make([]byte, len(text)), 0o644) },
		"a list":      func() error { return os.WriteFile(rundir.Config(dir), []byte("- seed\n"), 0o644) },
	} {
		write(text)
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		before := damaged
		if check(what); damaged != before+1 || again != what {
			t.Errorf("%s: not repaired", what)
		}
	}
	for line, want := range map[string]string{
		"seed: x": `seed is "x"; want a whole number`, "seed: 7\nsede: 7": `unknown key "sede"`, "seed: 7\nseed: 7": "seed is set twice",
	} {
		write(strings.Replace(text, "\nseed: 7\n", "\n"+line+"\n", 1))
		if _, err := readBegun(dir, started); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "correct it, or delete the file") {
			t.Errorf("%s: %v", line, err)
		}
	}
	if err := errors.Join(os.Remove(rundir.Config(dir)), os.Symlink("config.yaml", rundir.Config(dir))); err != nil {
		t.Fatal(err)
	}
	if _, err := readBegun(dir, started); err == nil || !strings.Contains(err.Error(), "make it readable, or delete it") {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

// Without a log the configuration defines the run; with neither there is no run.
func TestBegunWithoutLog(t *testing.T) {
	t.Parallel()
	_, text := startedRun(t)
	if got, err := openBegun(t.Context(), configured(t, text)); err != nil || got.Curriculum.Steps != 4 || got.Sandbox.Sandboxes != 2 {
		t.Errorf("only a configuration: %+v, %v", got, err)
	}
	if got, err := openBegun(t.Context(), t.TempDir()); err != nil || got != nil {
		t.Errorf("nothing: %+v, %v", got, err)
	}
	for _, text := range []string{"", "# nothing\n", "seed: 1\nste"} {
		if _, err := openBegun(t.Context(), configured(t, text)); !errors.Is(err, saved.ErrNoSettings) || !strings.Contains(err.Error(), "replay rebuild") {
			t.Errorf("%q and no log: %v", text, err)
		}
	}
	runs := t.TempDir()
	if err := os.MkdirAll(rundir.NATS(filepath.Join(runs, "r")), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := parse("--runs-dir", runs, "--resume", "r"); !errors.Is(err, saved.ErrNoSettings) || !strings.Contains(err.Error(), "replay rebuild") {
		t.Errorf("only a bus: %v", err)
	}
}

// The commands that begin, continue or fork a run compare its configuration with its log.
func TestCommandsCompareWithTheLog(t *testing.T) {
	t.Parallel()
	started, text := startedRun(t)
	m, err := events.Encode(events.New("r", "start-0001", "recorder", time.Now(), started))
	if err != nil {
		t.Fatal(err)
	}
	dir, log := eventlogtest.Run(t, []events.Message{m})
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	runs, name := t.TempDir(), m.Run
	if err := os.Rename(dir, filepath.Join(runs, name)); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(runs, name)
	commands := [][]string{
		{"train", "--runs-dir", runs, "--resume", name},
		{"stage", "recorder", "--runs-dir", runs, "--run", name, "--bus", "nats://127.0.0.1:1"},
		{"replay", "fork", dir, filepath.Join(t.TempDir(), "fork"), "--at", "end"},
		{"replay", "restore-bus", dir},
	}
	write := func(text string) {
		if err := os.WriteFile(rundir.Config(dir), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(strings.Replace(text, "\nseed: 7\n", "\nseed: 8\n", 1))
	for i, args := range commands {
		want := exitUsage
		if i >= 2 { // these read the configuration of the run when they work
			want = exitFailed
		}
		var out, stderr bytes.Buffer
		if code := run(t.Context(), args, &out, &stderr); code != want || !strings.Contains(stderr.String(), "config.yaml is 8, but the run was started with --seed 7") {
			t.Errorf("%v: exit code %d, %s", args, code, &stderr)
		}
	}
	write("")
	command, err := parse("--runs-dir", runs, "--resume", name)
	if err != nil || command.Curriculum.Steps != 4 || command.Curriculum.Seed != 7 {
		t.Fatalf("%v, %+v", err, command)
	}
	if got, err := command.directory("", slog.New(slog.DiscardHandler)); err != nil || got != dir {
		t.Fatalf("%s, %v", got, err)
	}
	saved, err := openBegun(t.Context(), dir)
	if err != nil || saved.Damage != nil {
		t.Fatalf("after the repair: %v, %v", saved, err)
	}
	command.RunsDir = saved.RunsDir // of the machine
	if diff := cmp.Diff(command.RunSettings, saved.RunSettings); diff != "" {
		t.Errorf("-resumed +saved:\n%s", diff)
	}
	if _, err := os.Stat(rundir.Config(dir) + ".damaged"); err != nil {
		t.Errorf("the damaged file: %v", err)
	}
	if info, err := os.Stat(rundir.Config(dir)); err != nil || info.Mode().Perm()&^fs.FileMode(0o644) != 0 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}
