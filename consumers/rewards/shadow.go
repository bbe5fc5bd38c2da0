package rewards

import (
	"context"
	"fmt"
	"math"
	"time"

	"codea1/events"
)

// Shadow is the handler of the shadow stage. It rewards an executed training group
// under other recipes than that of its run.
type Shadow struct {
	Recipe  Recipe   // of the run
	Recipes []Recipe // the others, 1 to events.MaxShadows
	Source  string   // the replica, as in the envelope
	Now     func() time.Time
}

// Handle takes one code.executed event. It ignores groups of an evaluation, and groups
// that have no reward in the run. A recipe that cannot reward the group is
// recorded with the reason.
func (s *Shadow) Handle(_ context.Context, e *events.Event) ([]*events.Event, error) {
	group, ok := e.Payload.(*events.CodeExecuted)
	if !ok {
		return nil, fmt.Errorf("shadow rewards: want %s, have %s", events.TypeCodeExecuted, e.Type)
	}
	if group.Plan.Purpose != events.PurposeTrain {
		return nil, nil
	}
	own, err := Score(s.Recipe, group)
	if err != nil {
		return nil, nil // the stage of the run's rewards says why
	}
	out := &events.RewardShadowed{Plan: group.Plan, ProblemID: group.ProblemID}
	for _, recipe := range s.Recipes {
		shadow := events.ShadowReward{Recipe: recipe.Name(), Alpha: recipe.Rules().Alpha, TopVar: -1}
		if r, err := Score(recipe, group); err != nil {
			shadow.Failure = err.Error()
		} else {
			shadow.Code, shadow.Test, shadow.TopVar = r.Code, r.Test, r.TopVar
			shadow.Other = r.TopVar != own.TopVar
			shadow.Pairs, shadow.Reversed = reversed(own.Code, r.Code)
		}
		out.Shadows = append(out.Shadows, shadow)
	}
	return []*events.Event{events.Caused(e, s.Source, s.Now(), out)}, nil
}

// reversed counts the pairs of answers that are rewarded in both lists, and those with
// the other order in the second list. Rewards that differ by rounding have no order.
func reversed(own, other []events.AnswerReward) (pairs, reversed int) {
	const rounding = 1e-9
	for i := range own {
		for j := range i {
			if own[i].Masked || own[j].Masked || other[i].Masked || other[j].Masked {
				continue
			}
			pairs++
			before, after := own[i].Reward-own[j].Reward, other[i].Reward-other[j].Reward
			if min(math.Abs(before), math.Abs(after)) > rounding && (before < 0) != (after < 0) {
				reversed++
			}
		}
	}
	return pairs, reversed
}
