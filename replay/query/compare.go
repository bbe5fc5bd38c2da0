package query

import (
	"math"

	"codea1/events"
)

// RoleChange compares the rewards of one model's completions under two recipes.
// The answers of a group are one set, the suites of an answer another: completions
// are ranked within a set, and their advantages are relative to it.
type RoleChange struct {
	Responses    uint64  `json:"responses"` // completions rewarded under both recipes
	RewardBefore float64 `json:"reward_before"`
	RewardAfter  float64 `json:"reward_after"`
	Pairs        uint64  `json:"pairs"`    // of completions of one set
	Reversed     uint64  `json:"reversed"` // pairs in the other order
	Tied         uint64  `json:"tied"`     // pairs that were ordered and are tied now
	Untied       uint64  `json:"untied"`   // pairs that were tied and are ordered now
	Shift        float64 `json:"advantage_shift"`
	Flipped      uint64  `json:"advantage_flipped"` // advantages with the other sign
	KeptBefore   uint64  `json:"kept_before"`       // groups to train on: with an advantage other than 0
	KeptAfter    uint64  `json:"kept_after"`
	KeptGained   uint64  `json:"kept_gained"` // groups to train on only under the other recipe
	KeptLost     uint64  `json:"kept_lost"`
}

// Reward is the reward of one completion.
type Reward struct {
	Reward, Advantage float64
	Masked            bool
}

// Answers returns the rewards of a group's answers.
func Answers(r *events.GroupRewarded) []Reward {
	set := make([]Reward, len(r.Code))
	for m := range r.Code {
		set[m] = Reward{r.Code[m].Reward, r.Code[m].Advantage, r.Code[m].Masked}
	}
	return set
}

// Suites returns the rewards of an answer's suites; none for answer -1.
func Suites(r *events.GroupRewarded, m int) []Reward {
	if m < 0 {
		return nil
	}
	set := make([]Reward, len(r.Test[m]))
	for n := range set {
		t := &r.Test[m][n]
		set[n] = Reward{t.Reward, t.Advantage, t.Masked}
	}
	return set
}

// trains reports whether a set has an advantage to train on.
func trains(set []Reward) bool {
	for _, r := range set {
		if !r.Masked && !near(r.Advantage, 0) {
			return true
		}
	}
	return false
}

// Compare adds a set under both recipes.
func (c *RoleChange) Compare(before, after []Reward) {
	both := func(i int) bool { return !before[i].Masked && !after[i].Masked }
	for i := range min(len(before), len(after)) {
		if !both(i) {
			continue
		}
		c.Responses++
		c.RewardBefore += before[i].Reward
		c.RewardAfter += after[i].Reward
		c.Shift += math.Abs(after[i].Advantage - before[i].Advantage)
		if before[i].Advantage*after[i].Advantage < 0 {
			c.Flipped++
		}
		for j := range i {
			if both(j) {
				c.comparePair(order(before[i].Reward, before[j].Reward), order(after[i].Reward, after[j].Reward))
			}
		}
	}
}

func (c *RoleChange) comparePair(before, after int) {
	c.Pairs++
	switch {
	case before == after:
	case before == 0:
		c.Untied++
	case after == 0:
		c.Tied++
	default:
		c.Reversed++
	}
}

// order compares two rewards; those that differ by rounding are tied.
func order(x, y float64) int {
	switch {
	case near(x, y):
		return 0
	case x < y:
		return -1
	}
	return 1
}

// keep counts a group that is trained on before, after, or both.
func (c *RoleChange) keep(before, after bool) {
	if before {
		c.KeptBefore++
	}
	if after {
		c.KeptAfter++
	}
	if after && !before {
		c.KeptGained++
	}
	if before && !after {
		c.KeptLost++
	}
}

// End divides the sums. Call it once, after the last set.
func (c *RoleChange) End() {
	if n := float64(c.Responses); n > 0 {
		c.RewardBefore /= n
		c.RewardAfter /= n
		c.Shift /= n
	}
}
