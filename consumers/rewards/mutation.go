package rewards

import "codea1/events"

// The weights of the recipe mutation.
const (
	mutationUseless = 0.1 // for each place up to that of a useless test
	mutationBroken  = 0.5 // for the share of statements that are no right test
)

type mutation struct{}

// Name implements Recipe.
func (mutation) Name() string { return NameMutation }

// Rules implements Recipe.
func (mutation) Rules() Rules {
	rules := paperRules
	rules.Probe = events.ProbeMutants
	return rules
}

// Reward implements Recipe. An answer has its reward under A1. A mutant of the
// ground truth is known if a kept test of the group fails it:
//
//	R_test = killed - 0.1 useless - 0.5 broken
//
// killed is the share of the known mutants that a test of the suite fails, broken the
// share of its statements that are no test that is right as stated, without the
// duplicates, 1 for a suite without a statement. A right test and a duplicate are useless if
// the tests before them fail each mutant that they fail; useless is the sum of their
// places, from 1 to the number of tests wanted. A test that was not probed counts for
// nothing, and no test is useless without a known mutant.
func (mutation) Reward(g *Group) error {
	if err := A1(DefaultAlpha).Reward(g); err != nil {
		return err
	}
	known := g.hits()
	for m := range g.Answers {
		for n := range g.Answers[m].Suites {
			g.mutationSuite(&g.Answers[m].Suites[n], known.Count())
		}
	}
	return nil
}

func (g *Group) mutationSuite(s *Suite, known int) {
	killed, useless, broken := make(events.Bits, len(g.none)), 0, 0
	for i := range s.Tests {
		t := &s.Tests[i]
		switch before := killed.Count(); {
		case t.Status == events.StatusDuplicate:
		case t.Status != events.StatusKept || t.Wrong:
			broken++
			continue
		default:
			row, ok := g.hitsOf(t)
			if !ok {
				continue
			}
			if killed.Add(row); killed.Count() > before {
				continue
			}
		}
		useless += min(i+1, g.Plan.Tests)
	}
	if known == 0 {
		useless = 0
	}
	share := 1.0
	if len(s.Tests) > 0 {
		share = ratio(broken, len(s.Tests))
	}
	s.Reward.RAdv = ratio(killed.Count(), known)
	s.Reward.Penalty = mutationUseless*float64(useless) + mutationBroken*share
	s.Reward.Reward = s.Reward.RAdv - s.Reward.Penalty
}
