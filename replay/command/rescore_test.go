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

// TestRescoreMostlyWithoutGolden: a recipe that can reward only a few groups has no
// result. Half of the groups are enough for one.
func TestRescoreMostlyWithoutGolden(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		without int // steps without golden tests, after one with
		want    string
	}{{1, ""}, {2, "4 of 6 groups cannot be rewarded: golden, alpha 0.5: "}, {600, "1,200 of 1,202 groups cannot be rewarded: "}} {
		s := replaytest.NewStory(t)
		s.Start()
		s.Step(1)
		s.NoGolden = true
		for step := range tt.without {
			s.Step(step + 2)
		}
		run, l := eventlogtest.Run(t, s.Messages)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		for _, flags := range [][]string{nil, {"--json"}} {
			out, err := execute(t, append([]string{"replay", "rescore", run, "--reward", "golden"}, flags...)...)
			if tt.want == "" {
				if err != nil || out == "" {
					t.Errorf("%d steps without golden tests, %v: %q, %v", tt.without, flags, out, err)
				}
				continue
			}
			if !errors.Is(err, ErrUnscorable) || out != "" || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%d steps without golden tests, %v: %q, %v; want %q", tt.without, flags, out, err, tt.want)
			}
		}
	}
}
