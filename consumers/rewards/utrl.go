package rewards

import "codea1/events"

// The weights of UTRL's rewards.
const (
	utrlFormat   = 0.1
	utrlDetected = 0.85
	utrlValidity = 0.05
	utrlWanted   = 12 // tests of a suite
	utrlPass     = 0.9
)

type utrl struct{}

// Name implements Recipe.
func (utrl) Name() string { return NameUtrl }

// Rules implements Recipe.
func (utrl) Rules() Rules {
	return Rules{TrainsTest: true, Cross: true, Advantage: AdvantageStd, Compare: CompareAnswer, Choose: ChooseMaxStd}
}

// Reward implements Recipe. A test is valid if it was kept and is right as stated:
//
//	R_test = 0.1 format + 0.85 detected + 0.05 valid / max(12, unique)
//	R_code = 0.9 pass + 0.1 format
//
// valid are the tests that are right as stated. detected is the share of the group's
// answers that fail a valid test of the suite, unique the number of its tests without
// duplicates, pass the share of the group's valid tests that the answer passes. The format of a suite is right if
// each of its statements is a test and there is one. The format of an answer is
// right if it loads.
func (utrl) Reward(g *Group) error {
	valid := map[int]bool{} // of all suites
	for m := range g.Answers {
		for n := range g.Answers[m].Suites {
			s := &g.Answers[m].Suites[n]
			right := g.rightAsStated(s)
			for _, bit := range right {
				valid[bit] = true
			}
			g.utrlSuite(s, right)
		}
	}
	for m := range g.Answers {
		a := &g.Answers[m]
		if !a.Loads {
			continue
		}
		passes := 0
		for bit := range valid {
			if a.passes(bit) {
				passes++
			}
		}
		a.Reward.Reward = utrlPass*ratio(passes, len(valid)) + utrlFormat
	}
	return nil
}

// utrlSuite sets the reward of a suite with these valid tests.
func (g *Group) utrlSuite(s *Suite, valid []int) {
	detected := 0
	for m := range g.Answers {
		for _, bit := range valid {
			if g.Answers[m].fails(bit) {
				detected++
				break
			}
		}
	}
	unique, format := 0, 0.0
	if len(s.Tests) > 0 {
		format = 1
	}
	for i := range s.Tests {
		switch s.Tests[i].Status {
		case events.StatusUnparsable:
			format = 0
		case events.StatusKept, events.StatusRaised:
			unique++
		}
	}
	kept, wrong, discarded := s.Counts()
	out := s.Reward
	out.Valid, out.Invalid = kept, wrong+discarded
	out.RVal = ratio(len(valid), max(utrlWanted, unique))
	out.RAdv = ratio(detected, len(g.Answers))
	out.Reward = utrlFormat*format + utrlDetected*out.RAdv + utrlValidity*out.RVal
}
