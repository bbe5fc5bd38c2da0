package rewards

import "codea1/events"

type cure struct{}

// Name implements Recipe.
func (cure) Name() string { return NameCure }

// Rules implements Recipe.
func (cure) Rules() Rules {
	return Rules{TrainsTest: true, Golden: true, Cross: true, Advantage: AdvantagePopulation, Compare: CompareAnswer, Choose: ChooseMaxStd}
}

// Reward implements Recipe. An answer earns its golden pass rate. It is good if
// that is 1. A test, with its value as stated, is right if all good answers pass it:
//
//	right: the share of the other answers that fail it, 1 if there are none
//	wrong: -(the share of the other answers that pass it), -1 if there are none
//
// A suite earns the mean of its tests. A statement that was discarded counts as a
// test that no answer passes, except a duplicate, which does not count. So does
// a suite without a test. Without a good answer, the Test LLM does not learn from
// the group.
func (cure) Reward(g *Group) error {
	passed, err := g.golden()
	if err != nil {
		return err
	}
	var good, bad []*Answer
	for i := range g.Answers {
		a := &g.Answers[i]
		if a.Loads {
			a.Reward.Reward = goldenRate(a.ExecutedAnswer)
		}
		if a.Loads && allTrue(passed[i]) {
			good = append(good, a)
		} else {
			bad = append(bad, a)
		}
	}
	for m := range g.Answers {
		for n := range g.Answers[m].Suites {
			s := &g.Answers[m].Suites[n]
			kept, wrong, discarded := s.Counts()
			s.Reward.Valid, s.Reward.Invalid = kept, wrong+discarded
			if len(good) > 0 {
				s.Reward.Reward = g.cureSuite(s, good, bad)
			}
		}
	}
	g.LeaveTests = len(good) == 0
	return nil
}

func (g *Group) cureSuite(s *Suite, good, bad []*Answer) float64 {
	sum, tests := 0.0, 0
	for i := range s.Tests {
		t := &s.Tests[i]
		bit, ok := g.test(t)
		switch {
		case ok:
			sum += cureTest(bit, good, bad)
		case t.Status == events.StatusKept || t.Status == events.StatusDuplicate:
			continue // a kept one was not run on all answers: over MaxCrossTests
		case len(bad) == 0:
			sum--
		}
		tests++
	}
	if tests == 0 && len(bad) == 0 && len(s.Tests) == 0 {
		return -1
	}
	return sum / float64(max(1, tests))
}

func cureTest(bit int, good, bad []*Answer) float64 {
	right := true
	for _, a := range good {
		right = right && a.passes(bit)
	}
	passes, fails := 0, 0
	for _, a := range bad {
		if a.passes(bit) {
			passes++
		}
		if a.fails(bit) {
			fails++
		}
	}
	switch {
	case right && len(bad) == 0:
		return 1
	case right:
		return ratio(fails, len(bad))
	case len(bad) == 0:
		return -1
	}
	return 0 - ratio(passes, len(bad)) // not -0
}
