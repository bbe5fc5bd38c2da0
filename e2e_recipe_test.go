package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codea1/events"
	"codea1/events/rundir"
)

// A run accepts a recipe file in place of the name of a recipe, and needs the file
// only at its start. It is interrupted early, and the hint how to go on finds it in its
// runs directory.
func TestTrainingUnderARecipeFile(t *testing.T) {
	onlyThorough(t, "the rewards of a recipe have tests")
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "mean.yaml")
	if err := os.WriteFile(file, []byte("advantage: mean\nvalidity: 0.25\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := start(t, dir, train("--steps", "2", "--name", "r", "--heldout", "", "--runs-dir", "elsewhere", "--reward", file)...)
	p.tap(t, func(int, *events.Message) bool {
		p.signal(t, os.Interrupt)
		return false
	})
	p.interrupted(t)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	hint := resumeHint.FindStringSubmatch(p.stdout.String())
	if hint == nil {
		t.Fatalf("no hint how to go on:\n%s", p.stdout.String())
	}
	must(t, dir, strings.Fields(hint[1])...)
	run := filepath.Join(dir, "elsewhere", "r")
	must(t, dir, "replay", "verify", run)
	const name = "formula(validity=0.25,advantage=mean)"
	for group, r := range read(t, run, 2).Rewards {
		if r.Recipe != name {
			t.Errorf("%s was rewarded by %s", group, r.Recipe)
		}
	}
	if config, err := os.ReadFile(rundir.Config(run)); err != nil || !strings.Contains(string(config), "reward: "+name) {
		t.Errorf("%v\n%s", err, config)
	}
	for args, want := range map[string]string{"nowhere.yaml": "no such file", "best": "unknown reward recipe"} {
		if why := refused(t, dir, train("--reward", args)...); !strings.Contains(why, want) {
			t.Errorf("%s: %s", args, why)
		}
	}
}
