package rewards_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/consumers/rewards"
	"codea1/events"
	"codea1/events/eventstest"
)

// A shadow has the rewards that a run under its recipe would have, and says how they
// differ from those of the run. A recipe that lacks a measurement is recorded
// with the reason, and the others are not affected.
func TestShadow(t *testing.T) {
	now := func() time.Time { return time.Unix(1, 0) }
	recipe := func(name string) rewards.Recipe {
		r, err := rewards.New(name, 0.5)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	chain := eventstest.Chain("r", 1, 0)
	executed := chain[3]
	group := executed.Payload.(*events.CodeExecuted)
	shadow := &rewards.Shadow{Recipe: recipe("a1"), Recipes: []rewards.Recipe{recipe("selfplay"), recipe("cure"), recipe("a1")}, Source: "shadow-0", Now: now}
	made, err := shadow.Handle(t.Context(), executed)
	if err != nil || len(made) != 1 {
		t.Fatalf("%d events, %v", len(made), err)
	}
	if _, err := events.Encode(made[0]); err != nil {
		t.Fatal(err)
	}
	out := made[0].Payload.(*events.RewardShadowed)
	for i, name := range []string{"selfplay", "cure", "a1"} {
		got := out.Shadows[i]
		want, err := rewards.Score(recipe(name), group)
		if err != nil {
			if got.Failure != err.Error() || !strings.Contains(got.Failure, "lacks") || len(got.Code) > 0 {
				t.Errorf("%s: %+v, want the failure %v", name, got, err)
			}
			continue
		}
		if d := cmp.Diff([]any{want.Recipe, want.Code, want.Test, want.TopVar}, []any{got.Recipe, got.Code, got.Test, got.TopVar}); d != "" || got.Failure != "" {
			t.Errorf("%s: %s %s", name, got.Failure, d)
		}
	}
	if out.Shadows[1].Failure == "" {
		t.Error("cure has rewards without the measurements that it needs")
	}
	if s := out.Shadows[2]; s.Other || s.Reversed != 0 {
		t.Errorf("the run's own recipe differs from the run: %+v", s)
	}
	group.Plan.Purpose = events.PurposeEval
	if made, err := shadow.Handle(t.Context(), executed); err != nil || len(made) != 0 {
		t.Errorf("an evaluation: %d events, %v", len(made), err)
	}
}
