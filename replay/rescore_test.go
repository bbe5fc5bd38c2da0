package replay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codea1/events"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestRoleChange(t *testing.T) {
	set := func(values ...float64) []response {
		out := make([]response, len(values))
		for i, v := range values {
			out[i] = response{reward: v, advantage: v - 0.5}
		}
		return out
	}
	masked := set(0.9, 0.1)
	masked[0].masked = true
	for _, tt := range []struct {
		name          string
		before, after []response
		want          RoleChange
	}{
		{"the same", set(0, 1), set(0, 1), RoleChange{Responses: 2, RewardBefore: 0.5, RewardAfter: 0.5, Pairs: 1, KeptBefore: 1, KeptAfter: 1}},
		{"reversed", set(0, 1), set(1, 0), RoleChange{Responses: 2, RewardBefore: 0.5, RewardAfter: 0.5, Pairs: 1, Reversed: 1, Shift: 1, Flipped: 2, KeptBefore: 1, KeptAfter: 1}},
		{"told apart and lost", set(0.5, 0.5, 1), set(0.5, 0, 0.5), RoleChange{Responses: 3, RewardBefore: 2.0 / 3, RewardAfter: 1.0 / 3, Pairs: 3, Tied: 1, Untied: 1, Shift: 1.0 / 3, KeptBefore: 1, KeptAfter: 1}},
		{"rounding is a tie", set(0.1+0.2, 0.3), set(0.3, 0.1+0.2), RoleChange{Responses: 2, RewardBefore: 0.3, RewardAfter: 0.3, Pairs: 1, KeptBefore: 1, KeptAfter: 1}},
		{"nothing left to teach", set(0, 1), set(0.5, 0.5), RoleChange{Responses: 2, RewardBefore: 0.5, RewardAfter: 0.5, Pairs: 1, Tied: 1, Shift: 0.5, KeptBefore: 1, KeptLost: 1}},
		{"masked on one side", set(0.1, 0.1), masked, RoleChange{Responses: 1, RewardBefore: 0.1, RewardAfter: 0.1, KeptBefore: 1, KeptAfter: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got RoleChange
			got.compare(tt.before, tt.after)
			got.keep(teaches(tt.before), teaches(tt.after))
			got.end()
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// File reads the name of a recipe and its alpha from a file.
func (r testRecipes) File(path string) (string, Score, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	var name string
	var alpha float64
	if _, err := fmt.Sscanf(string(text), "%s %g", &name, &alpha); err != nil {
		return "", nil, err
	}
	score, err := r.Recipe(name, alpha)
	return "the file's " + name, score, err
}

// A recipe file is asked about under the name it gives itself; --alpha says
// nothing of it.
func TestRescoreFromFile(t *testing.T) {
	t.Parallel()
	run, l := storyLog(t, tell(t))
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

// The recipe of the run itself changes nothing, whatever happened in it.
func TestRescoreUnderTheSameRecipe(t *testing.T) {
	t.Parallel()
	_, l := storyLog(t, tell(t))
	score, err := testRecipes{}.Recipe("share", 0.5)
	if err != nil {
		t.Fatal(err)
	}
	groups := 0
	_, err = l.Rescore(t.Context(), score, func(g *GroupRescored) error {
		groups++
		if difference := sameRewards(g.Before, g.After); difference != "" {
			return fmt.Errorf("%s: %s", g.Group, difference)
		}
		return nil
	}, nil)
	if err != nil || groups != storySteps*storyGroups {
		t.Fatalf("%d groups, %v", groups, err)
	}
}

// A group that the recipe cannot reward is counted, not compared.
func TestRescoreCountsTheUnscorable(t *testing.T) {
	t.Parallel()
	_, l := storyLog(t, tell(t))
	got, err := l.Rescore(t.Context(), func(g *events.CodeExecuted) (*events.GroupRewarded, error) {
		if g.ProblemID == "p0" {
			return nil, errUnknownRecipe
		}
		return passShare(g, 0.5), nil
	}, nil, nil)
	if err != nil || got.Groups != 2 || got.Unscorable != 2 || got.Why != "s000001-q0000: unknown recipe" {
		t.Fatalf("%+v, %v", got, err)
	}
}
