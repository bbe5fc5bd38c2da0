package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
)

// torchTraining returns the arguments of a training with the torch engine on the CPU,
// from the checkpoints that come with codea1.
func torchTraining(t *testing.T, more ...string) []string {
	t.Helper()
	python := os.Getenv("CODEA1_TEST_TORCH_PYTHON")
	if python == "" {
		t.Skip("CODEA1_TEST_TORCH_PYTHON is not set")
	}
	source, err := filepath.Abs("gpuworker/torch/python")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", source)
	t.Setenv("OMP_NUM_THREADS", "1")
	return train(append([]string{"--engine", "torch", "--torch-python", python, "--device", "cpu", "--steps", "2", "--name", "r"}, more...)...)
}

// children returns the processes of a codea1 that run codea1_torch.
func (p *child) children(t *testing.T) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, e := range entries {
		var pid, parent int
		if _, err := fmt.Sscan(e.Name(), &pid); err != nil {
			continue
		}
		status, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "status")) // the process may have ended
		_, after, _ := strings.Cut(string(status), "\nPPid:")
		if _, err := fmt.Sscan(after, &parent); err != nil || parent != p.command.Process.Pid {
			continue
		}
		command, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if strings.Contains(string(command), "codea1_torch") {
			found = append(found, pid)
		}
	}
	return found
}

// A training with the torch engine and children that are killed again and again ends
// with the weights, the rewards and the Mistake Book of an undisturbed one. The
// rollouts of the disturbed one have children of their own, which get the weights from
// the trainers.
func TestTorchTrainingSurvivesKilledChildren(t *testing.T) {
	const steps = 2
	args := torchTraining(t)
	dir := t.TempDir()
	table := must(t, dir, args...)
	if !strings.Contains(table, fmt.Sprintf("Run r: %d of %d steps, completed", steps, steps)) {
		t.Fatal(table)
	}
	want := read(t, runPath(dir, "r"), steps)
	if strings.Count(want.started[0].Config, "\nengine: torch\n") != 1 {
		t.Errorf("run.started does not record the engine:\n%s", want.started[0].Config)
	}

	t.Run("in stages of their own", func(t *testing.T) { torchStages(t, args, want, steps) })

	disturbed := t.TempDir()
	p := start(t, disturbed, append(args, "--rollout-device", "cpu", "--broadcast-weights")...)
	kills := 0
	p.tap(t, func(n int, m *events.Message) bool {
		// A child of either role, in turn. Groups rewarded start an update, updates
		// a sampling; the other events come in between.
		if n%6 != 0 {
			return true
		}
		if children := p.children(t); len(children) > 0 {
			victim, err := os.FindProcess(children[kills%len(children)])
			if err == nil && victim.Kill() == nil {
				kills++
			}
		}
		return kills < 8
	})
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit code %d after %d kills", code, kills)
	}
	if kills < 3 {
		t.Errorf("%d kills", kills)
	}
	t.Logf("%d kills", kills)
	if diff := cmp.Diff(want, read(t, runPath(disturbed, "r"), steps), sameRun); diff != "" {
		t.Errorf("%d kills (-undisturbed +killed):\n%s", kills, diff)
	}
	if out := must(t, disturbed, "replay", "verify", "r"); !strings.Contains(out, "intact") {
		t.Error(out)
	}
}

// torchStages runs each stage of a training as a process. A rollout and a trainer of
// a role do not share their weights there.
func torchStages(t *testing.T, args []string, want *history, steps int) {
	dir := t.TempDir()
	c := &crew{t: t, dir: dir, run: crewRun(t), steady: true, patience: patience}
	bus := startNATS(t)
	c.bus = func(user string) []string { return bus.flags(t, user) }
	c.endWithTest()
	var machine, rest []string
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "--name":
			i++
		case "--torch-python", "--device":
			machine = append(machine, args[i:i+2]...)
			i++
		default:
			rest = append(rest, args[i])
		}
	}
	c.recorder(rest)
	for _, s := range events.Stages {
		switch stages[s.Name].command.(type) {
		case ModelStage:
			c.add(s.Name, machine...)
		case nil, ExecutionStage:
			if s.Within == "" && !s.Optional {
				c.add(s.Name)
			}
		}
	}
	c.wait()
	if diff := cmp.Diff(want, read(t, runPath(dir, c.run), steps), sameRun); diff != "" {
		t.Errorf("(-one process +stages)\n%s", diff)
	}
}
