package execution

import (
	"time"

	"codea1/consumers/execution/sandbox"
)

// An answer has at least four times the time that the ground truth took for the same
// calls and scripts, and at least the configured limits. The limits of a single call
// or script end at a ceiling, which is also the limit of the ground truth on golden
// tests.
const (
	truthMargin  = 4
	truthCeiling = time.Minute
)

// limits bounds a job: each of its items, and all together.
type limits struct{ each, budget time.Duration }

// timed adds up the ground truth's time, with that of loading.
type timed struct {
	sum, most time.Duration
	unknown   int // items that it has not run
}

func (t *timed) add(took time.Duration, known bool) {
	if !known {
		t.unknown++
		return
	}
	t.sum += took
	t.most = max(t.most, took)
}

// allow returns the limits of an answer. An unknown item counts as much as the slowest
// known one. A limit is the configured one doubled as often as necessary, so that runs
// of the same calls usually have the same limits, which the cache needs.
func (x *Executor) allow(t timed) limits {
	sum := t.sum + time.Duration(t.unknown)*t.most
	each := min(doubled(x.config.CallTimeout, truthMargin*t.most), max(x.config.CallTimeout, truthCeiling))
	budget := x.config.JobTimeout
	if truthMargin*sum > budget/2 {
		budget = doubled(budget, each+truthMargin*sum) // loading may take each, too
	}
	return limits{each, budget}
}

func doubled(limit, need time.Duration) time.Duration {
	for limit < need {
		limit *= 2
	}
	return limit
}

// allowTruth returns the limits of a ground truth on golden tests.
func (x *Executor) allowTruth() limits {
	each := max(x.config.CallTimeout, truthCeiling)
	return limits{each, max(x.config.JobTimeout, 2*each)}
}

// job returns a job of a program with these limits.
func (l limits) job(kind sandbox.JobKind, program sandbox.Program, items []string) sandbox.Job {
	return sandbox.Job{Kind: kind, Code: program.Code, Entry: program.EntryPoint, Items: items, Each: l.each, Budget: l.budget}
}
