package evaluation

// Choose returns the answer that tests without a ground truth choose: the one that passes
// the most. Of several, it is one with the behaviour that most of all answers have, and
// of these the earliest. passed and behaviours have an item per answer, and there is at
// least one.
func Choose(passed []int, behaviours []string) int {
	votes := map[string]int{}
	for _, b := range behaviours {
		votes[b]++
	}
	best := 0
	for i := range passed {
		more := passed[i] > passed[best]
		if more || passed[i] == passed[best] && votes[behaviours[i]] > votes[behaviours[best]] {
			best = i
		}
	}
	return best
}
