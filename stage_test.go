package main

import (
	"testing"

	"codea1/events"
)

// A process takes from run.started what the run is, and from nobody but its own
// user what runs on its machine.
func TestFlagsFromRunStarted(t *testing.T) {
	started := &events.RunStarted{Attempt: 1, Config: "problems-per-step: 4\ncall-timeout: 3s\nsandbox-level: open\npython: /tmp/evil\nsandboxes: 9\n"}
	flags, err := startedFlags(started, []string{"--sandboxes=2"})
	if err != nil {
		t.Fatal(err)
	}
	if flags.ProblemsPerStep != 4 || flags.Sandbox.CallTimeout.Seconds() != 3 {
		t.Errorf("not the run's: %d problems, call timeout %v", flags.ProblemsPerStep, flags.Sandbox.CallTimeout)
	}
	if flags.Sandbox.SandboxLevel != "isolated" || flags.Sandbox.Python != "" || flags.Sandbox.Sandboxes != 2 {
		t.Errorf("not this machine's: %+v", flags.Sandbox)
	}
	if _, err := startedFlags(&events.RunStarted{Attempt: 2, Config: "problems-per: 4"}, nil); err == nil {
		t.Error("a key that no run has is taken")
	}
	t.Setenv("CODEA1_PROBLEMS_PER_STEP", "5")
	if _, err := startedFlags(started, nil); err == nil {
		t.Error("the environment makes another run of it")
	}
}
