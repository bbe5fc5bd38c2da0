package export

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"codea1/events"
)

// EvolveCoder's rules for the tests of a problem.
const (
	hardenedPasses  = 10 // a test is kept if one of so many answers passes it, or more
	hardenedPattern = 5  // most tests that the same answers pass
	hardenedLeast   = 5  // least tests of a problem
)

var (
	// ErrNoCross is returned for a log in which no suite ran on the answers of others.
	ErrNoCross = errors.New("no group has the verdicts of all suites on all answers (cross in code.executed); train with a recipe that asks for them, such as utrl")
	// ErrNothingHardened is returned for a log with too few tests of each problem.
	ErrNothingHardened = fmt.Errorf("no problem has %d tests that pass the filter", hardenedLeast)
)

// hardenedSet collects the tests of a run that tell its answers apart. The ground
// truth of their problem passes all of them: kept tests expect its values.
type hardenedSet struct {
	problems map[string]*hardenedProblem
	crossed  bool // a group has a cross
}

type hardenedProblem struct {
	problem events.Problem
	tests   map[events.CrossTest]*hardenedTest
	next    int // order of the next new test
}

type hardenedTest struct {
	order       int // rank by the first occurrence of the test
	ran, passed int // answers that load
	pattern     [sha256.Size]byte
}

func newHardenedSet() *hardenedSet { return &hardenedSet{problems: make(map[string]*hardenedProblem)} }

// add adds the verdicts of a group's kept tests, with their true values, on its
// answers.
func (s *hardenedSet) add(problem *events.Problem, g *events.CodeExecuted) {
	tests := g.CrossTests()
	if g.Cross == nil || g.Cross.Tests != len(tests) {
		return
	}
	s.crossed = true
	p := s.problems[problem.ID]
	if p == nil {
		p = &hardenedProblem{problem: *problem, tests: make(map[events.CrossTest]*hardenedTest)}
		s.problems[problem.ID] = p
	}
	kept := g.KeptTests()
	for i, test := range tests {
		if !kept[test] { // a value that is wrong as stated
			continue
		}
		t := p.tests[test]
		if t == nil {
			t = &hardenedTest{order: p.next}
			p.tests[test] = t
			p.next++
		}
		pattern := append(t.pattern[:], g.Plan.GroupID()...)
		for m := range g.Answers {
			verdict := byte('n')
			switch {
			case g.Cross.Passed[m].Has(i):
				verdict = 'p'
				t.passed++
				t.ran++
			case g.Cross.Failed[m].Has(i):
				verdict = 'f'
				t.ran++
			}
			pattern = append(pattern, verdict)
		}
		t.pattern = sha256.Sum256(pattern)
	}
	if len(p.tests) > 4*maxGoldenTests {
		best := p.evolved()
		maps.DeleteFunc(p.tests, func(t events.CrossTest, _ *hardenedTest) bool { return !slices.Contains(best, t) })
	}
}

// ranked returns the useful tests by the share of the answers that pass them, the
// smallest first, and then the others.
func (p *hardenedProblem) ranked() []events.CrossTest {
	return slices.SortedFunc(maps.Keys(p.tests), func(x, y events.CrossTest) int {
		a, b := p.tests[x], p.tests[y]
		return cmp.Or(-cmp.Compare(count(a.useful()), count(b.useful())), cmp.Compare(a.passed*b.ran, b.passed*a.ran), cmp.Compare(a.order, b.order))
	})
}

// useful reports whether enough answers pass the test.
func (t *hardenedTest) useful() bool { return t.ran > 0 && hardenedPasses*t.passed >= t.ran }

// evolved returns the tests of a problem that the rules leave, the hardest first.
func (p *hardenedProblem) evolved() []events.CrossTest {
	var tests []events.CrossTest
	same := make(map[[sha256.Size]byte]int)
	for _, test := range p.ranked() {
		t := p.tests[test]
		if same[t.pattern]++; t.useful() && same[t.pattern] <= hardenedPattern && len(tests) < maxGoldenTests {
			tests = append(tests, test)
		}
	}
	return tests
}

// rows returns the problems with enough tests, by ID. Golden tests that the run
// posed come first.
func (s *hardenedSet) rows(run string) ([]GoldenRow, error) {
	if !s.crossed {
		return nil, ErrNoCross
	}
	var rows []GoldenRow
	for _, id := range slices.Sorted(maps.Keys(s.problems)) {
		p := s.problems[id]
		tests := p.evolved()
		if len(tests) < hardenedLeast {
			continue
		}
		row := GoldenRow{ID: id, Source: "codea1 run " + run, Question: p.problem.Question, EntryPoint: p.problem.EntryPoint, Solution: p.problem.Solution}
		if p.problem.Atol == 0 { // a row has no tolerance
			row.Tests = slices.Clone(p.problem.Golden)
		}
		for _, t := range tests {
			if line := "assert " + t.Call + " == " + t.Value; !slices.Contains(row.Tests, line) {
				row.Tests = append(row.Tests, line)
			}
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil, ErrNothingHardened
	}
	return rows, nil
}
