package main

import (
	"log/slog"
	"strings"
	"testing"

	"codea1/events"
)

// Every stage that is a process has a command and a start, and no other stage.
func TestStagesOfTheTopology(t *testing.T) {
	processes := 0
	for _, s := range events.Stages {
		p, ok := stages[s.Name]
		if ok != (s.Within == "") {
			t.Errorf("stage %s within %q: has a process: %v", s.Name, s.Within, ok)
		}
		if ok {
			processes++
		}
		if ok && s.Kind == events.Worker && p.start == nil {
			t.Errorf("stage %s has no start", s.Name)
		}
	}
	if processes != len(stages) {
		t.Errorf("%d processes, %d of them are in the topology", len(stages), processes)
	}
}

// A process takes the settings of the run from run.started, and the settings of its
// machine only from its own user.
func TestSettingsFromRunStarted(t *testing.T) {
	started := &events.RunStarted{Attempt: 1, Config: "problems-per-step: 4\nsteps: 180\ncall-timeout: 3s\nsandbox-level: open\npython: /tmp/evil\nsandboxes: 9\n"}
	settings, err := worker(t, started, "--sandboxes=2")
	if err != nil {
		t.Fatal(err)
	}
	if settings.Curriculum.ProblemsPerStep != 4 || settings.Sandbox.CallTimeout.Seconds() != 3 {
		t.Errorf("not the run's: %d problems, call timeout %v", settings.Curriculum.ProblemsPerStep, settings.Sandbox.CallTimeout)
	}
	if settings.Sandbox.SandboxLevel != "isolated" || settings.Sandbox.Python != "" || settings.Sandbox.Sandboxes != 2 {
		t.Errorf("not this machine's: %+v", settings.Sandbox)
	}
	if _, err := worker(t, &events.RunStarted{Attempt: 2, Config: "problems-per: 4"}); err == nil {
		t.Error("an unknown key is accepted")
	}
	t.Setenv("CODEA1_ACK_WAIT", "7s")
	t.Setenv("CODEA1_SANDBOX_LEVEL", "confined")
	settings, err = worker(t, started)
	if err != nil {
		t.Fatal(err)
	}
	if settings.Delivery.AckWait.Seconds() != 7 || settings.Sandbox.SandboxLevel != "confined" {
		t.Errorf("not the environment's: ack wait %v, %+v", settings.Delivery.AckWait, settings.Sandbox)
	}
	t.Setenv("CODEA1_PROBLEMS_PER_STEP", "5")
	if _, err := worker(t, started); err == nil || !strings.Contains(err.Error(), "CODEA1_PROBLEMS_PER_STEP is 5, but the run was started with --problems-per-step 4") {
		t.Errorf("the environment changes the run: %v", err)
	}
	// The trainers of a run agree about its length.
	t.Setenv("CODEA1_PROBLEMS_PER_STEP", "4")
	t.Setenv("CODEA1_STEPS", "7")
	if settings, err = worker(t, started); err != nil || settings.Curriculum.Steps != 180 {
		t.Errorf("the environment changes the length of the run to %+v, %v", settings, err)
	}
}

// worker returns the settings of an execution stage under a run.started.
func worker(t *testing.T, started *events.RunStarted, args ...string) (*RunSettings, error) {
	t.Helper()
	var cli CLI
	parser, err := newParser(&cli)
	if err != nil {
		t.Fatal(err)
	}
	flags, err := parser.Parse(append([]string{"stage", "execution", "--run", "r", "--bus", "nats://127.0.0.1:1"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	return workerSettings(flags, flags.Selected().Target.Addr().Interface(), started, slog.New(slog.DiscardHandler))
}
