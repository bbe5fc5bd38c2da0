package dashboard

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
)

// shadowed returns a reward.shadowed of a group under some recipes: their answers earn
// 0.2 and 0.4, their suites 0.5, but for a masked one.
func (s *script) shadowed(step, slot int, other bool, reversed int, recipes ...string) *events.Event {
	rewarded := s.rewarded(step, slot, 2, 0, 0)
	plan := rewarded.Payload.(*events.GroupRewarded).Plan
	plan.Answers, plan.Suites = 2, 1
	p := &events.RewardShadowed{Plan: plan, ProblemID: "p"}
	for _, recipe := range recipes {
		p.Shadows = append(p.Shadows, events.ShadowReward{
			Recipe: recipe, Code: []events.AnswerReward{{Reward: 0.2}, {Reward: 0.4}},
			Test: [][]events.SuiteReward{{{Reward: 0.5}}, {{Reward: 9, Masked: true}}}, TopVar: 0, Other: other, Pairs: 1, Reversed: reversed,
		})
	}
	return s.event(rewarded.Group, p)
}

// The series has columns for each recipe: the mean rewards, the share of groups with
// another choice, and that of pairs in the other order. Recipes beyond the limit
// of an event are left out, and points are merged with them.
func TestShadowSeries(t *testing.T) {
	state, s := NewState(), &script{at: noon}
	state.Apply(s.started(1, 9))
	state.Apply(s.rewarded(1, 0, 2, 1, 1))
	if _, ok := state.Snapshot().Series["shadow_code utrl"]; ok {
		t.Error("a run without the stage has its columns")
	}
	before := len(state.Snapshot().Stages)
	state.Apply(s.shadowed(1, 0, true, 1, "utrl"))
	state.Apply(s.shadowed(1, 1, false, 0, "utrl", "cure"))
	state.Apply(s.shadowed(2, 0, false, 0, "cure"))
	failed := s.shadowed(2, 1, false, 0, "cure")
	failed.Payload.(*events.RewardShadowed).Shadows = []events.ShadowReward{{Recipe: "utrl", Failure: "no cross"}}
	state.Apply(failed)
	check := func(when string, want map[string]string) {
		t.Helper()
		series := state.Snapshot().Series
		for name, values := range want {
			got, err := json.Marshal(series[name])
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(values, string(got)); d != "" {
				t.Errorf("%s: %s: %s", when, name, d)
			}
		}
	}
	check("of each step", map[string]string{
		"shadow_code utrl": "[0.3,null]", "shadow_test utrl": "[0.5,null]", "shadow_choice utrl": "[0.5,null]", "shadow_order utrl": "[0.5,null]",
		"shadow_code cure": "[0.3,0.3]", "shadow_choice cure": "[0,0]",
	})
	if after := state.Snapshot().Stages; len(after) != before+1 || after[before].Stage != events.StageShadow {
		t.Errorf("the stages are %+v", after)
	}
	state.Series.coarsen()
	check("of two steps", map[string]string{"shadow_choice utrl": "[0.5]", "shadow_choice cure": "[0]"})
	for i := range 2 * events.MaxShadows {
		state.Apply(s.shadowed(3, 0, false, 0, fmt.Sprintf("r%d", i)))
	}
	if n := len(state.Series.shadows); n != events.MaxShadows {
		t.Errorf("%d recipes are kept, want %d", n, events.MaxShadows)
	}
}
