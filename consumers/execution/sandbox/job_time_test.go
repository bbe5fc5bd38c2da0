package sandbox

import (
	"testing"
	"time"
)

// TestCoreTimeOfAllCounts: a limit is extended by the time for which a candidate
// waited for a core, until all its processes together have used the limit.
func TestCoreTimeOfAllCounts(t *testing.T) {
	const each = time.Hour // the clock of the test does not matter
	for _, c := range []struct {
		name                  string
		earlier, used, waited time.Duration // time before the item; core time and waiting by now
		want                  time.Duration // extension
	}{
		{"alone on a core", 0, each, 0, 0},
		{"waited half", 0, each / 2, each / 2, each / 2},
		{"waited all the time", 0, 0, each, each},
		{"waited a little", 0, each * 99 / 100, each / 100, 0},
		{"forty that wait for each other", 0, 2 * each, 38 * each, 0},
		{"forty on a busy machine", 0, each * 7 / 10, 38 * each, each * 3 / 10},
		{"nearly at its limit", 0, each * 99 / 100, each, each / 10},
		{"after long items", 5 * each, 5*each + each/2, each, each / 2},
		{"many after long items", 5 * each, 9 * each, each, 0},
	} {
		limits := newJobTime(each, 20*each)
		limits.measure = func() (used, waited time.Duration, ok bool) { return c.used, c.waited, true }
		now := time.Now()
		limits.began = now.Add(-each)
		limits.until = now
		limits.followed, limits.measured = limits.began.Add(-c.earlier), limits.began
		extended := limits.extend()
		if got := limits.until.Sub(now); extended != (c.want > 0) || (got-c.want).Abs() > each/1000 {
			t.Errorf("%s: extended %t, by %v; want %v", c.name, extended, got, c.want)
		}
	}
}
