package rewards

import (
	"math"

	"codea1/events"
)

// coverageCurve is a, the steepness of the recipe coverage.
const coverageCurve = 3

type coverage struct{}

// Name implements Recipe.
func (coverage) Name() string { return NameCoverage }

// Rules implements Recipe.
func (coverage) Rules() Rules {
	rules := paperRules
	rules.Probe = events.ProbeBranches
	return rules
}

// Reward implements Recipe. An answer has its reward under A1. c is the share of the
// branches of the ground truth that the tests of a suite take, and D the difficulty of the
// ground truth:
//
//	R_test = (1 + D) (exp(a c) - 1) / (exp(a) - 1)
//	R_test = -1 - (1 - D) for a suite that fails
//
// A suite fails if a statement is no test, raises on the ground truth or states a wrong
// value, or if it has no statement. c is 1 without branches.
func (coverage) Reward(g *Group) error {
	if err := A1(DefaultAlpha).Reward(g); err != nil {
		return err
	}
	d := g.Probed(events.ProbeBranches).Difficulty
	for m := range g.Answers {
		for n := range g.Answers[m].Suites {
			s := &g.Answers[m].Suites[n]
			c, ok := g.covered(s)
			s.Reward.RAdv, s.Reward.Penalty = c, 0
			s.Reward.Reward = (1 + d) * math.Expm1(coverageCurve*c) / math.Expm1(coverageCurve)
			if !ok {
				s.Reward.Penalty = 2 - d
				s.Reward.Reward = d - 2
			}
		}
	}
	return nil
}

// covered returns the share of the branches that the tests of a suite take, and whether
// each of its statements is right.
func (g *Group) covered(s *Suite) (share float64, ok bool) {
	taken := make(events.Bits, len(g.none))
	ok = len(s.Tests) > 0
	for i := range s.Tests {
		t := &s.Tests[i]
		if t.Status != events.StatusKept && t.Status != events.StatusDuplicate || t.Wrong {
			ok = false
		}
		if row, probed := g.hitsOf(t); probed && !t.Wrong {
			taken.Add(row)
		}
	}
	if total := g.Probed(events.ProbeBranches).Total; total > 0 {
		return ratio(taken.Count(), total), ok
	}
	return 1, ok
}
