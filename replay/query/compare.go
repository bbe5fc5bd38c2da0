package query

import (
	"math"

	"codea1/events"
)

// RoleChange compares the rewards of one model's responses. The answers of a
// question are one set, the suites of an answer another: within a set responses
// are ranked, and their advantages are relative to it.
type RoleChange struct {
	Responses    uint64  `json:"responses"` // rewarded under both rules
	RewardBefore float64 `json:"reward_before"`
	RewardAfter  float64 `json:"reward_after"`
	Pairs        uint64  `json:"pairs"`    // of responses of one set
	Reversed     uint64  `json:"reversed"` // pairs in the other order
	Tied         uint64  `json:"tied"`     // pairs that were ordered and are no longer
	Untied       uint64  `json:"untied"`   // pairs that were not ordered and are now
	Shift        float64 `json:"advantage_shift"`
	Flipped      uint64  `json:"advantage_flipped"` // advantages of the other sign
	KeptBefore   uint64  `json:"kept_before"`       // groups that teach: with an advantage other than 0
	KeptAfter    uint64  `json:"kept_after"`
	KeptGained   uint64  `json:"kept_gained"` // teach only under the other rule
	KeptLost     uint64  `json:"kept_lost"`
}

// response is what a recipe makes of one.
type response struct {
	reward, advantage float64
	masked            bool
}

func AnswersOf(r *events.GroupRewarded) []response {
	set := make([]response, len(r.Code))
	for m := range r.Code {
		set[m] = response{r.Code[m].Reward, r.Code[m].Advantage, r.Code[m].Masked}
	}
	return set
}

// SuitesOf returns the suites of an answer; none for answer -1.
func SuitesOf(r *events.GroupRewarded, m int) []response {
	if m < 0 {
		return nil
	}
	set := make([]response, len(r.Test[m]))
	for n := range set {
		t := &r.Test[m][n]
		set[n] = response{t.Reward, t.Advantage, t.Masked}
	}
	return set
}

func teaches(set []response) bool {
	for _, r := range set {
		if !r.masked && !near(r.advantage, 0) {
			return true
		}
	}
	return false
}

func (c *RoleChange) Compare(before, after []response) {
	both := func(i int) bool { return !before[i].masked && !after[i].masked }
	for i := range min(len(before), len(after)) {
		if !both(i) {
			continue
		}
		c.Responses++
		c.RewardBefore += before[i].reward
		c.RewardAfter += after[i].reward
		c.Shift += math.Abs(after[i].advantage - before[i].advantage)
		if before[i].advantage*after[i].advantage < 0 {
			c.Flipped++
		}
		for j := range i {
			if both(j) {
				c.comparePair(order(before[i].reward, before[j].reward), order(after[i].reward, after[j].reward))
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

// order ranks two rewards; what only rounding tells apart is a tie.
func order(x, y float64) int {
	switch {
	case near(x, y):
		return 0
	case x < y:
		return -1
	}
	return 1
}

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

// End turns sums into means.
func (c *RoleChange) End() {
	if n := float64(c.Responses); n > 0 {
		c.RewardBefore /= n
		c.RewardAfter /= n
		c.Shift /= n
	}
}
