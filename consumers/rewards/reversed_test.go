package rewards

import (
	"testing"

	"codea1/events"
)

// Answer 2 changes from the highest to the lowest reward, 0 and 1 become equal but for
// rounding, and 3 is masked in the other list.
func TestReversedPairs(t *testing.T) {
	own := []events.AnswerReward{{Reward: 0.1}, {Reward: 0.2}, {Reward: 0.9}, {Reward: 0.5}}
	other := []events.AnswerReward{{Reward: 0.3}, {Reward: 0.3 + 1e-15}, {Reward: -1}, {Masked: true}}
	if pairs, n := reversed(own, other); pairs != 3 || n != 2 {
		t.Errorf("%d of %d pairs are reversed, want 2 of 3: 0 with 2, and 1 with 2", n, pairs)
	}
	if pairs, n := reversed(own, own); pairs != 6 || n != 0 {
		t.Errorf("%d of %d pairs are reversed in one list, want 0 of 6", n, pairs)
	}
}
