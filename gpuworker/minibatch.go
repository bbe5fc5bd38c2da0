package gpuworker

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"codea1/events"
)

// lesson is the training data of one step for one role, in slot order.
type lesson struct {
	batches     []miniBatch // without empty ones
	groups      []string    // groups that are trained on
	dropped     []string    // groups that are not
	stale       int         // dropped groups that were sampled by a version that is too old
	unusable    []error     // reasons to drop groups that cannot be trained on
	temperature float64     // at which the responses were sampled
	rewards     float64     // sum over the sequences
	sequences   int
}

// miniBatch holds the sequences of one optimizer step.
type miniBatch []groupSequences

// groupSequences holds the training sequences of a group.
type groupSequences struct {
	group     string
	sequences []Sequence
	rewards   []float64 // one per sequence
}

// all returns the sequences of all groups.
func (b miniBatch) all() []Sequence {
	var all []Sequence
	for i := range b {
		all = append(all, b[i].sequences...)
	}
	return all
}

// refer returns pointers to the sequences of all groups.
func (b miniBatch) refer() []*Sequence {
	var all []*Sequence
	for i := range b {
		for j := range b[i].sequences {
			all = append(all, &b[i].sequences[j])
		}
	}
	return all
}

// newLesson divides a complete step into mini-batches of groupsPerBatch slots;
// the last one may have fewer. A dropped group makes its mini-batch smaller and
// does not move other groups into it.
//
// Role code trains on the M answers of a group, role test on the N suites of the
// answer that TOPVAR chose (design step 8). A shared model trains on both in the
// same mini-batch. Masked completions are left out.
func newLesson(role events.Role, step collectedStep, groupsPerBatch, maxStaleness int) *lesson {
	l := &lesson{}
	for slots := range slices.Chunk(step.groups, groupsPerBatch) {
		var batch miniBatch
		for _, g := range slots {
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
			got, err := sequencesOf(role, g)
			if err == nil && g.suites != nil {
				var suites groupSequences
				suites, err = sequencesOf(events.RoleTest, &openGroup{rollout: g.suites, rewards: g.rewards})
				got.sequences, got.rewards = append(got.sequences, suites.sequences...), append(got.rewards, suites.rewards...)
			}
			if err == nil && l.temperature != 0 && g.temperature != l.temperature {
				err = fmt.Errorf("it was sampled at temperature %v, groups before it at %v", g.temperature, l.temperature)
			}
			if err != nil {
				l.dropped = append(l.dropped, g.name)
				l.unusable = append(l.unusable, fmt.Errorf("group %s: %w", g.name, err))
				continue
			}
			l.temperature = g.temperature
			l.groups = append(l.groups, g.name)
			if n := len(got.sequences); n > 0 {
				batch = append(batch, got)
				l.sequences += n
				for _, r := range got.rewards {
					l.rewards += r
				}
			}
		}
		if len(batch) > 0 {
			l.batches = append(l.batches, batch)
		}
	}
	return l
}

// version returns the oldest policy version that sampled the group.
func (g *openGroup) version() int {
	if g.suites != nil {
		return min(g.rollout.version, g.suites.version)
	}
	return g.rollout.version
}

// leaveOut drops a group on which the engine cannot train.
func (l *lesson) leaveOut(g *groupSequences, err error) {
	at := slices.Index(l.groups, g.group)
	l.groups = slices.Delete(l.groups, at, at+1)
	l.dropped = append(l.dropped, g.group)
	slices.Sort(l.dropped)
	l.unusable = append(l.unusable, fmt.Errorf("group %s: %w", g.group, err))
	l.sequences -= len(g.sequences)
	for _, r := range g.rewards {
		l.rewards -= r
	}
}

// maxAdvantage bounds an advantage, so that no loss overflows.
const maxAdvantage = 1e6

var errNumbers = errors.New("a log-prob or an advantage is no number that can be trained on")

// sequencesOf returns the training sequences of a group. The events of a group can
// come from publishers that contradict each other.
func sequencesOf(role events.Role, g *openGroup) (groupSequences, error) {
	out := groupSequences{group: g.name}
	add := func(prompt events.Int32s, c *events.Completion, reward, advantage float64, masked bool) error {
		if masked || len(c.Tokens) == 0 {
			return nil
		}
		if math.Abs(advantage) > maxAdvantage || slices.ContainsFunc(c.LogProbs, func(p float32) bool { return p-p != 0 }) {
			return errNumbers
		}
		out.sequences = append(out.sequences, Sequence{Prompt: prompt, Tokens: c.Tokens, OldProbs: c.LogProbs, Advantage: advantage})
		out.rewards = append(out.rewards, reward)
		return nil
	}
	if role == events.RoleCode {
		answers := g.rollout.rows[0]
		if len(answers) != len(g.rewards.Code) {
			return out, fmt.Errorf("%d answers, %d rewards", len(answers), len(g.rewards.Code))
		}
		for i := range answers {
			r := &g.rewards.Code[i]
			if err := add(g.rollout.prompts[0], &answers[i], r.Reward, r.Advantage, r.Masked); err != nil {
				return out, err
			}
		}
		return out, nil
	}
	chosen := g.rewards.TopVar
	if chosen < 0 {
		return out, nil
	}
	if chosen >= len(g.rollout.rows) || len(g.rollout.rows[chosen]) != len(g.rewards.Test[chosen]) {
		return out, fmt.Errorf("answer %d has a different number of rewards and suites", chosen)
	}
	for i := range g.rollout.rows[chosen] {
		r := &g.rewards.Test[chosen][i]
		if err := add(g.rollout.prompts[chosen], &g.rollout.rows[chosen][i], r.Reward, r.Advantage, r.Masked); err != nil {
			return out, err
		}
	}
	return out, nil
}
