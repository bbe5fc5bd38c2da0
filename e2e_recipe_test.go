package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codea1/events/rundir"
)

// A run accepts a recipe file in place of the name of a recipe, and needs the file
// only at its start.
func TestTrainingUnderARecipeFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "mean.yaml")
	if err := os.WriteFile(file, []byte("advantage: mean\nvalidity: 0.25\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	must(t, dir, train("--steps", "1", "--name", "r", "--heldout", "", "--reward", file)...)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	must(t, dir, "train", "--resume", "r", "--steps", "2")
	must(t, dir, "replay", "verify", "r")
	const name = "formula(validity=0.25,advantage=mean)"
	for group, r := range read(t, runPath(dir, "r"), 2).Rewards {
		if r.Recipe != name {
			t.Errorf("%s was rewarded by %s", group, r.Recipe)
		}
	}
	if config, err := os.ReadFile(rundir.Config(runPath(dir, "r"))); err != nil || !strings.Contains(string(config), "reward: "+name) {
		t.Errorf("%v\n%s", err, config)
	}
	for args, want := range map[string]string{"nowhere.yaml": "no such file", "best": "unknown reward recipe"} {
		if why := refused(t, dir, train("--reward", args)...); !strings.Contains(why, want) {
			t.Errorf("%s: %s", args, why)
		}
	}
	must(t, dir, train("--steps", "1", "--name", "self", "--heldout", "", "--reward", "selfplay")...)
}
