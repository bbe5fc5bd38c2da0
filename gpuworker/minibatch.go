package gpuworker

import (
	"fmt"

	"codea1/events"
)

// lesson is the training data of one step for one role, in slot order.
type lesson struct {
	batches     []miniBatch // without empty ones
	groups      []string    // groups that are trained on
	dropped     []string    // groups that are not
	stale       int         // dropped groups that were sampled by a version that is too old
	temperature float64     // at which the responses were sampled
	rewardMean  float64     // over the sequences
	sequences   int
}

// miniBatch holds the sequences of one optimizer step.
type miniBatch struct{ sequences []Sequence }

// newLesson divides a complete step into mini-batches of groupsPerBatch slots;
// the last one may have fewer. A dropped group makes its mini-batch smaller and
// does not move other groups into it.
//
// Role code trains on the M answers of a group, role test on the N suites of the
// answer that TOPVAR chose (design step 8). A shared model trains on both in the
// same mini-batch. Masked completions are left out.
func newLesson(role events.Role, step collectedStep, groupsPerBatch, maxStaleness int) (*lesson, error) {
	l := &lesson{temperature: 1}
	temperatureOf := ""
	var rewards float64
	for first := 0; first < len(step.groups); first += groupsPerBatch {
		var batch miniBatch
		for _, g := range step.groups[first:min(first+groupsPerBatch, len(step.groups))] {
			// Version v was trained on step v, so the newest version that can
			// sample for a step is step-1.
			stale := g.lost == "" && g.version() < step.number-1-maxStaleness
			if stale {
				l.stale++
			}
			if stale || g.lost != "" {
				l.dropped = append(l.dropped, g.name)
				continue
			}
			if temperatureOf == "" {
				l.temperature, temperatureOf = g.temperature, g.name
			} else if g.temperature != l.temperature {
				return nil, fmt.Errorf("step %d: group %s was sampled at temperature %v, %s at %v",
					step.number, g.name, g.temperature, temperatureOf, l.temperature)
			}
			sequences, got, err := sequencesOf(role, g)
			if err != nil {
				return nil, fmt.Errorf("step %d: group %s: %w", step.number, g.name, err)
			}
			if g.suites != nil {
				suites, earned, err := sequencesOf(events.RoleTest, &openGroup{rollout: g.suites, rewards: g.rewards})
				if err != nil {
					return nil, fmt.Errorf("step %d: group %s: %w", step.number, g.name, err)
				}
				sequences, got = append(sequences, suites...), append(got, earned...)
			}
			l.groups = append(l.groups, g.name)
			batch.sequences = append(batch.sequences, sequences...)
			for _, r := range got {
				rewards += r
			}
		}
		if len(batch.sequences) > 0 {
			l.batches = append(l.batches, batch)
			l.sequences += len(batch.sequences)
		}
	}
	if l.sequences > 0 {
		l.rewardMean = rewards / float64(l.sequences)
	}
	return l, nil
}

// version returns the oldest policy version that sampled the group.
func (g *openGroup) version() int {
	if g.suites != nil {
		return min(g.rollout.version, g.suites.version)
	}
	return g.rollout.version
}

// sequencesOf returns the training sequences of a group and their rewards.
func sequencesOf(role events.Role, g *openGroup) (out []Sequence, rewards []float64, err error) {
	add := func(prompt events.Int32s, c *events.Completion, reward, advantage float64, masked bool) {
		if masked || len(c.Tokens) == 0 {
			return
		}
		out = append(out, Sequence{Prompt: prompt, Tokens: c.Tokens, OldProbs: c.LogProbs, Advantage: advantage})
		rewards = append(rewards, reward)
	}
	if role == events.RoleCode {
		answers := g.rollout.rows[0]
		if len(answers) != len(g.rewards.Code) {
			return nil, nil, fmt.Errorf("%d answers, %d rewards", len(answers), len(g.rewards.Code))
		}
		for i := range answers {
			r := &g.rewards.Code[i]
			add(g.rollout.prompts[0], &answers[i], r.Reward, r.Advantage, r.Masked)
		}
		return out, rewards, nil
	}
	chosen := g.rewards.TopVar
	if chosen < 0 {
		return nil, nil, nil
	}
	if chosen >= len(g.rollout.rows) || len(g.rollout.rows[chosen]) != len(g.rewards.Test[chosen]) {
		return nil, nil, fmt.Errorf("answer %d has a different number of rewards and suites", chosen)
	}
	for i := range g.rollout.rows[chosen] {
		r := &g.rewards.Test[chosen][i]
		add(g.rollout.prompts[chosen], &g.rollout.rows[chosen][i], r.Reward, r.Advantage, r.Masked)
	}
	return out, rewards, nil
}
