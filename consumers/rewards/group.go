package rewards

import (
	"errors"
	"fmt"
	"slices"

	"codea1/events"
)

var (
	// ErrNoGolden is returned for a group without verdicts of golden tests.
	ErrNoGolden = errors.New("no golden test was run on the answer")
	// ErrNoCross is returned for a group without the verdicts of all suites on all
	// answers.
	ErrNoCross = errors.New("the tests of the suites were not run on all answers")
	// ErrNoProbes is returned for a group without the probes that a recipe needs.
	ErrNoProbes = errors.New("the tests of the suites were not probed")
	// ErrNoPredict is returned for a group of a problem that asks for a program.
	ErrNoPredict = errors.New("the answers are no predictions")
	// ErrNotJudged is returned for a group without the judgements that a recipe needs.
	ErrNotJudged = errors.New("the answers were not judged")
)

// Group is an executed group as a recipe sees it. It has no answer and no suite
// that was lost to an infrastructure failure, so that these take no part in any
// reward. The event's own list of answers still has them.
type Group struct {
	*events.CodeExecuted
	Answers []Answer

	// LeaveTests is set by a recipe if the suites of this group teach nothing: the
	// Test LLM does not learn from the group.
	LeaveTests bool

	tests  map[events.CrossTest]int         // the bit of each test in Cross
	probed map[events.CrossTest]events.Bits // the probes that each test hits
	none   events.Bits                      // a row without a hit
}

// Answer is an answer of a Group, with its reward, which the recipe sets.
type Answer struct {
	*events.ExecutedAnswer
	Suites    []Suite
	Judgement *events.Judgement // nil without a judge of the recipe
	Reward    *events.AnswerReward

	passed, failed events.Bits // its rows of Cross
}

// Suite is a suite of an Answer, with its reward, which the recipe sets.
type Suite struct {
	*events.ExecutedSuite
	Reward *events.SuiteReward
}

// view returns the group as the recipe with these rules sees it. It sets Loads and
// Masked of the rewards in out. An error names the field that the group lacks.
func (r *Rules) view(executed *events.CodeExecuted, out *events.GroupRewarded) (*Group, error) {
	g := &Group{CodeExecuted: executed}
	if r.Cross {
		if err := g.readTests(); err != nil {
			return nil, err
		}
	}
	if r.Predict && len(executed.Predict) == 0 {
		return nil, fmt.Errorf("%w: code.executed lacks `predict`; use a recipe that needs none, or a run with predict problems (codea1 problems predict)", ErrNoPredict)
	}
	if r.Probe != "" {
		if err := g.readProbes(r.Probe); err != nil {
			return nil, err
		}
	}
	if r.Judge != "" && !executed.Judged.Has(r.Judge) {
		return nil, fmt.Errorf("%w: code.executed lacks `judged` with %s; use a recipe that needs none, or a run that was trained with one that does", ErrNotJudged, r.Judge)
	}
	for m := range executed.Answers {
		from, reward := &executed.Answers[m], &out.Code[m]
		out.Test[m] = make([]events.SuiteReward, executed.Plan.Suites)
		a := Answer{ExecutedAnswer: from, Reward: reward}
		for n := range out.Test[m] {
			if s := &out.Test[m][n]; from.Failure != "" || from.Suites[n].Failure != "" {
				s.Masked = true
			} else {
				a.Suites = append(a.Suites, Suite{&from.Suites[n], s})
			}
		}
		reward.Loads = from.Loads && from.Failure == ""
		// An answer that lost all its suites, or that the judge could not judge, has no
		// measurement. An answer that does not load has a reward of 0 without any.
		lost := r.TrainsTest && from.Loads && executed.Plan.Suites > 0 && len(a.Suites) == 0
		if r.Judge != "" {
			a.Judgement = &executed.Judged.Answers[m]
			lost = lost || from.Loads && a.Judgement.Failure(r.Judge) != ""
		}
		if reward.Masked = lost || from.Failure != ""; reward.Masked {
			for n := range out.Test[m] { // a recipe does not see them
				out.Test[m][n].Masked = true
			}
			continue
		}
		if r.Cross {
			a.passed, a.failed = executed.Cross.Passed[m], executed.Cross.Failed[m]
		}
		if r.Golden && a.Loads && len(a.Golden) == 0 || r.Predict && a.Loads && len(a.Golden) != len(executed.Predict) {
			return nil, fmt.Errorf("answer %d: %w; use a recipe that needs none, or a run with golden tests", m, ErrNoGolden)
		}
		g.Answers = append(g.Answers, a)
	}
	if len(g.Answers) == 0 {
		return nil, ErrAllMasked
	}
	return g, nil
}

func (g *Group) readTests() error {
	if g.Cross == nil {
		return fmt.Errorf("%w: code.executed lacks `cross`; use a recipe that needs none, or a run that was trained with one that does", ErrNoCross)
	}
	tests := g.CrossTests()
	if len(tests) != g.Cross.Tests {
		return fmt.Errorf("%w: cross has %d tests, the suites have %d", ErrNoCross, g.Cross.Tests, len(tests))
	}
	g.tests = make(map[events.CrossTest]int, len(tests))
	for i, t := range tests {
		g.tests[t] = i
	}
	return nil
}

func (g *Group) readProbes(kind events.Probe) error {
	p := g.Probed(kind)
	if p == nil {
		return fmt.Errorf("%w: code.executed lacks `probes` with %s; use a recipe that needs none, or a run that was trained with one that does", ErrNoProbes, kind)
	}
	tests := g.ProbedTests()
	if len(tests) != len(p.Hits) {
		return fmt.Errorf("%w: probes has %d tests, the suites have %d", ErrNoProbes, len(p.Hits), len(tests))
	}
	g.none = events.NewProbes(kind, p.Engine, p.Hash, p.Total, 1).Hits[0]
	g.probed = make(map[events.CrossTest]events.Bits, len(tests))
	for i, t := range tests {
		g.probed[t] = p.Hits[i]
	}
	return nil
}

// hitsOf returns the probes that a kept test hits. It reports false for one that was
// not probed.
func (g *Group) hitsOf(t *events.ExecutedTest) (events.Bits, bool) {
	row, ok := g.probed[events.CrossTest{Call: t.Call, Value: t.Expected}]
	return row, ok && t.Status == events.StatusKept
}

// hits returns the probes that the kept tests of all suites hit.
func (g *Group) hits() events.Bits {
	all := slices.Clone(g.none)
	for m := range g.Answers {
		for _, s := range g.Answers[m].Suites {
			for i := range s.Tests {
				if row, ok := g.hitsOf(&s.Tests[i]); ok {
					all.Add(row)
				}
			}
		}
	}
	return all
}

// golden returns whether each answer passes each golden test. An answer that does
// not load passes none.
func (g *Group) golden() ([][]bool, error) {
	tests := 0
	for i := range g.Answers {
		tests = max(tests, len(g.Answers[i].Golden))
	}
	table := make([][]bool, len(g.Answers))
	for i := range g.Answers {
		a := &g.Answers[i]
		if a.Loads && len(a.Golden) != tests {
			return nil, fmt.Errorf("%w: one answer has %d golden verdicts, another one %d", ErrNoGolden, len(a.Golden), tests)
		}
		table[i] = make([]bool, tests)
		for j := range a.Golden {
			table[i][j] = a.Golden[j].Verdict == events.VerdictPass
		}
	}
	return table, nil
}

// test returns the bit of a test of a suite in the rows of the answers, with its
// value as stated. It reports false for a test that was not run on all answers.
func (g *Group) test(t *events.ExecutedTest) (int, bool) {
	value := t.Expected
	if t.Wrong {
		value = t.Stated
	}
	i, ok := g.tests[events.CrossTest{Call: t.Call, Value: value}]
	return i, ok && t.Status == events.StatusKept
}

// passes and fails report the verdict of a test on an answer. A test that was not
// run does neither. An answer that does not load fails every test.
func (a *Answer) passes(test int) bool { return a.passed.Has(test) }
func (a *Answer) fails(test int) bool  { return !a.Loads || a.failed.Has(test) }

// rightAsStated returns the distinct kept tests of a suite that state the true
// value, as bits in the rows of the answers.
func (g *Group) rightAsStated(s *Suite) []int {
	var right []int
	for i := range s.Tests {
		if t := &s.Tests[i]; !t.Wrong {
			if bit, ok := g.test(t); ok && !slices.Contains(right, bit) {
				right = append(right, bit)
			}
		}
	}
	return right
}

func allTrue(row []bool) bool { return !slices.Contains(row, false) }
