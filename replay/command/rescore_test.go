package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/internal/replaytest"
)

// A recipe file is reported under its own name, and --alpha does not apply to it.
func TestRescoreFromFile(t *testing.T) {
	t.Parallel()
	run, l := eventlogtest.Run(t, replaytest.Tell(t))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "recipe.yaml")
	if err := os.WriteFile(file, []byte("share 0.25"), 0o644); err != nil {
		t.Fatal(err)
	}
	want, err := execute(t, "replay", "rescore", run, "--reward", "share", "--alpha", "0.25")
	if err != nil {
		t.Fatal(err)
	}
	got, err := execute(t, "replay", "rescore", run, "--reward", file)
	if err != nil {
		t.Fatal(err)
	}
	formula, got, _ := strings.Cut(got, "\n")
	heading, rest, _ := strings.Cut(got, "\n")
	_, wantRest, _ := strings.Cut(want, "\n")
	if formula != "the file's share" || !strings.Contains(heading, "under recipe.yaml  ") {
		t.Errorf("%q, heading %q", formula, heading)
	}
	if diff := cmp.Diff(strings.Fields(wantRest), strings.Fields(rest)); diff != "" {
		t.Error(diff)
	}
	if _, err := execute(t, "replay", "rescore", run, "--reward", "nowhere.yaml"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
