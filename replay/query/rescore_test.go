package query

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codea1/events"
	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/internal/replaytest"
)

func TestRoleChange(t *testing.T) {
	set := func(values ...float64) []Reward {
		out := make([]Reward, len(values))
		for i, v := range values {
			out[i] = Reward{Reward: v, Advantage: v - 0.5}
		}
		return out
	}
	masked := set(0.9, 0.1)
	masked[0].Masked = true
	for _, tt := range []struct {
		name          string
		before, after []Reward
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
			got.Compare(tt.before, tt.after)
			got.keep(trains(tt.before), trains(tt.after))
			got.End()
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The run's own recipe gives the recorded rewards.
func TestRescoreUnderTheSameRecipe(t *testing.T) {
	t.Parallel()
	_, l := eventlogtest.Run(t, replaytest.Tell(t))
	score, err := replaytest.Recipes{}.Recipe("share", 0.5)
	if err != nil {
		t.Fatal(err)
	}
	groups := 0
	_, err = Rescore(t.Context(), l, score, func(g *GroupRescored) error {
		groups++
		if difference := Difference(g.Before, g.After); difference != "" {
			return fmt.Errorf("%s: %s", g.Group, difference)
		}
		return nil
	}, nil)
	if err != nil || groups != replaytest.Steps*replaytest.Groups {
		t.Fatalf("%d groups, %v", groups, err)
	}
}

// A group that the recipe cannot reward is counted, not compared.
func TestRescoreCountsTheUnscorable(t *testing.T) {
	t.Parallel()
	_, l := eventlogtest.Run(t, replaytest.Tell(t))
	got, err := Rescore(t.Context(), l, func(g *events.CodeExecuted) (*events.GroupRewarded, error) {
		if g.ProblemID == "p0" {
			return nil, replaytest.ErrUnknownRecipe
		}
		return replaytest.PassShare(g, 0.5), nil
	}, nil, nil)
	if err != nil || got.Groups != 2 || got.Unscorable != 2 || got.Why != "s000001-q0000: unknown recipe" {
		t.Fatalf("%+v, %v", got, err)
	}
}
