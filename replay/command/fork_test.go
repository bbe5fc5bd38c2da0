package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/events/natsbus/natstest"
	"codea1/events/rundir"
	"codea1/replay/eventlog"
	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/fork"
	"codea1/replay/internal/replaytest"
)

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// testHost has a real bus, and records the calls for checkpoints.
type testHost struct {
	bus     fork.SeedBus
	kept    map[string][]int // by run directory and role
	placed  []fork.Placement
	removed []int
	aside   int
	fail    error // of PlaceCheckpoint
	vanish  bool  // the run deletes its checkpoints after they are listed
}

func (h *testHost) Configure(_, config string, changes map[string]string) (string, error) {
	for name, value := range changes {
		config += name + ": " + value + "\n"
	}
	return config, nil
}

func (h *testHost) Config(dir string) (string, error) {
	text, err := os.ReadFile(rundir.Config(dir))
	return string(text), err
}

func (h *testHost) Steps(string, int) (int, error) { return 100, nil }

func (h *testHost) OpenBus(context.Context, string, string, string) (fork.SeedBus, func() error, error) {
	return h.bus, func() error { return nil }, nil
}

func (h *testHost) PutBusAside(string, string) error {
	h.aside++
	return nil
}

func (h *testHost) Checkpoints(dir string, role events.Role) ([]int, error) {
	return h.kept[filepath.Base(dir)+"/"+string(role)], nil
}

func (h *testHost) PlaceCheckpoint(_ context.Context, p fork.Placement) error {
	if h.vanish && !p.Made {
		h.kept = nil
		return os.ErrNotExist
	}
	h.placed = append(h.placed, p)
	return h.fail
}

func (h *testHost) PlaceStart(string, string) error { return nil }

func (h *testHost) RemoveCheckpoint(_ string, _ events.Role, version int) error {
	h.removed = append(h.removed, version)
	return nil
}

// told returns the directory of a stopped, whole run.
func told(t *testing.T) (runs, dir string) {
	t.Helper()
	run, l := eventlogtest.Run(t, replaytest.Tell(t))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(run), run
}

// A fork has the bus positions and the newest checkpoints of the fork's position. A
// checkpoint that was not kept is trained again.
func TestForkCommand(t *testing.T) {
	t.Parallel()
	runs, dir := told(t)
	host := &testHost{bus: natstest.Bus(t), kept: map[string][]int{filepath.Base(dir) + "/code": {1, 2}}}
	var out bytes.Buffer
	c := ForkCommand{runArgument: runArgument{RunDir: dir, RunsDir: runs}, New: "r2", At: "step:1", Set: map[string]string{"alpha": "0.25"}, JSON: true}
	parent := &Command{Host: host, Retrainer: testTrainer{}, Recipes: replaytest.Recipes{}}
	if err := c.Run(within(t), &out, slog.New(slog.DiscardHandler), parent); err != nil {
		t.Fatal(err)
	}
	var report forkedJSON
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if report.Run != filepath.Join(runs, "r2") || report.Origin.Run != replaytest.Run || len(report.Newest) != 2 || report.Open != 0 ||
		!cmp.Equal(report.Retrain, []string{"test v1"}) {
		t.Errorf("%s", out.String())
	}
	if len(host.placed) != 2 || host.placed[0].Made || host.placed[0].From != dir || host.placed[0].FromRun != replaytest.Run ||
		!host.placed[1].Made || host.placed[1].FromRun != "r2" {
		t.Errorf("%+v", host.placed)
	}
	if config, err := os.ReadFile(rundir.Config(report.Run)); err != nil || string(config) != "alpha: 0.25\n" {
		t.Errorf("%q, %v", config, err)
	}
	if left, _ := filepath.Glob(filepath.Join(report.Run, ".*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	l := eventlogtest.Open(t, eventlog.Dir(report.Run), eventlog.Options{})
	if last, _ := l.Last(); last != report.Events || l.Position() == events.Start || host.placed[0].Position != l.Position() {
		t.Errorf("%d events, at %q, trainers at %q", last, l.Position(), host.placed[0].Position)
	}
	// Verify names the origin.
	out.Reset()
	verify := VerifyCommand{runArgument: runArgument{RunDir: report.Run}}
	if err := verify.Run(within(t), &out, slog.New(slog.DiscardHandler), parent); err != nil || !strings.Contains(out.String(), "events are those of run r1") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// A live run may delete a checkpoint while it is forked.
func TestForkCommandOfALiveRun(t *testing.T) {
	t.Parallel()
	runs, dir := told(t)
	host := &testHost{bus: natstest.Bus(t), vanish: true, kept: map[string][]int{filepath.Base(dir) + "/code": {1, 2}, filepath.Base(dir) + "/test": {1, 2}}}
	var out bytes.Buffer
	c := ForkCommand{runArgument: runArgument{RunDir: dir, RunsDir: runs}, New: "r2", At: "end"}
	if err := c.Run(within(t), &out, slog.New(slog.DiscardHandler), &Command{Host: host, Retrainer: testTrainer{}}); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), "its checkpoint did not exist") != 2 || len(host.placed) != 2 {
		t.Errorf("%+v\n%s", host.placed, out.String())
	}
}

func TestForkCommandLeavesNothingHalf(t *testing.T) {
	t.Parallel()
	runs, dir := told(t)
	failed := errors.New("no room")
	host := &testHost{bus: natstest.Bus(t), kept: map[string][]int{filepath.Base(dir) + "/code": {2}}}
	c := ForkCommand{runArgument: runArgument{RunDir: dir, RunsDir: runs}, New: "r2", At: "end"}
	run := func(parent *Command) error {
		return c.Run(within(t), new(bytes.Buffer), slog.New(slog.DiscardHandler), parent)
	}
	if err := run(&Command{}); !errors.Is(err, fork.ErrNoHost) {
		t.Errorf("without a host: %v", err)
	}
	if err := run(&Command{Host: host}); !errors.Is(err, fork.ErrNoRetrainer) {
		t.Errorf("without an engine, and test v2 not kept: %v", err)
	}
	var diverged *fork.DivergedError
	if err := run(&Command{Host: host, Retrainer: testTrainer{wrong: 2}}); !errors.As(err, &diverged) {
		t.Errorf("trained again to other weights: %v", err)
	}
	host.fail = failed
	if err := run(&Command{Host: host, Retrainer: testTrainer{}}); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(runs, "r2*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	c.New = dir
	if err := run(&Command{Host: host, Retrainer: testTrainer{}}); !errors.Is(err, fork.ErrNotEmpty) {
		t.Errorf("into its origin: %v", err)
	}
}

// A restored bus has the log, recorder and trainers have positions on it, and versions that
// the log does not have are removed.
func TestRestoreBusCommand(t *testing.T) {
	t.Parallel()
	_, dir := told(t)
	if err := os.WriteFile(rundir.Config(dir), []byte("seed: 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	base := filepath.Base(dir)
	host := &testHost{bus: natstest.Bus(t), kept: map[string][]int{base + "/code": {1, 2, 3}}}
	var out bytes.Buffer
	c := RestoreBusCommand{runArgument: runArgument{RunDir: dir}}
	if err := c.Run(within(t), &out, slog.New(slog.DiscardHandler), &Command{Host: host, Retrainer: testTrainer{}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"published      31 events", "code v3: it is not in the log", "code v1 has a new position", "test v2: its checkpoint did not exist"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q:\n%s", want, out.String())
		}
	}
	if host.aside != 1 || !cmp.Equal(host.removed, []int{3}) || len(host.placed) != 3 {
		t.Errorf("%+v", host)
	}
	l := eventlogtest.Open(t, eventlog.Dir(dir), eventlog.Options{})
	last, _ := l.Last()
	reader, err := host.bus.Read(within(t), events.ReadConfig{Run: replaytest.Run, From: host.placed[0].Position})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	// After v1 a trainer needs step 2 from its first problem on.
	m, _, err := reader.Next(within(t))
	if err != nil || m.Type != events.TypeProblemPosed || m.Group != "s000002-q0000" {
		t.Errorf("a trainer at v1 continues with %s of %s, %v", m.Type, m.Group, err)
	}
	if last == 0 || l.Position() != host.placed[1].Position {
		t.Errorf("the log is at %q, a trainer with nothing left at %q", l.Position(), host.placed[1].Position)
	}
}

// The embedded bus is opened only for an existing run directory.
func TestRebuildCommandFromNoBus(t *testing.T) {
	t.Parallel()
	into := filepath.Join(t.TempDir(), "into")
	c := RebuildCommand{runArgument: runArgument{RunDir: "nowhere", RunsDir: t.TempDir()}, Into: into, FromBus: "embedded", Quiet: time.Minute}
	run := func(parent *Command) error {
		return c.Run(within(t), new(bytes.Buffer), slog.New(slog.DiscardHandler), parent)
	}
	if err := run(&Command{Host: &testHost{}}); err == nil || !strings.Contains(err.Error(), "holds a run (config.yaml") {
		t.Errorf("no run: %v", err)
	}
	if err := run(&Command{}); !errors.Is(err, fork.ErrNoHost) {
		t.Errorf("no host: %v", err)
	}
	c.Quiet = 0
	if err := run(&Command{Host: &testHost{}}); err == nil || !strings.Contains(err.Error(), "--quiet") {
		t.Errorf("no wait: %v", err)
	}
	if left, _ := filepath.Glob(into + "*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
