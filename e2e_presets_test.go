package main

import (
	"strings"
	"testing"
)

// A run of every preset is verified, and its versions are trained again with the same
// weights.
func TestRunsOfAllPresetsAreVerifiedAndTrainedAgain(t *testing.T) {
	t.Parallel()
	// The paper's values are too large for the embedded engine.
	small := []string{"--code-tokens", "72", "--test-tokens", "96", "--tests", "3", "--prompt-style", "plain"}
	for _, preset := range presets.Names() {
		t.Run(preset, func(t *testing.T) {
			if preset != defaultPreset {
				onlyThorough(t, "the stages of the default preset are the same; golden and selfplay have tests of their own")
			}
			t.Parallel()
			steps := 1
			var dir string
			switch preset {
			case defaultPreset:
				steps, dir = sharedSteps, completedRun(t)
			default:
				dir = t.TempDir()
				args := append(train("--preset", preset, "--name", "r"), small...)
				if preset == "sft" {
					steps = 0
				} else {
					args = append(args, "--steps", "1")
				}
				must(t, dir, args...)
			}
			read(t, runPath(dir, "r"), steps)
			if out := must(t, dir, "replay", "verify", "r"); !strings.Contains(out, "every effect has its cause, every group ends once and is trained once") {
				t.Error(out)
			}
			if out := must(t, dir, "replay", "retrain", "r"); strings.Count(out, "trained again, each with the same weights") != strings.Count(out, "\n") || out == "" {
				t.Error(out)
			}
		})
	}
}
