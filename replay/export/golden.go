package export

import (
	"cmp"
	"maps"
	"slices"

	"codea1/events"
)

// GoldenRow is one problem with tests that a run has generated for it, in the
// format of `codea1 train --problems`: the paper's "generated tests as
// supervision".
type GoldenRow struct {
	ID         string   `json:"id" parquet:"id"`
	Source     string   `json:"source" parquet:"source,dict"`
	Question   string   `json:"question" parquet:"question"`
	EntryPoint string   `json:"entry_point" parquet:"entry_point"`
	Solution   string   `json:"solution" parquet:"solution"`
	Tests      []string `json:"tests" parquet:"tests"`
}

func (r *GoldenRow) texts() map[string]int {
	tests := 0
	for _, t := range r.Tests {
		tests += len(t)
	}
	return map[string]int{"question": len(r.Question), "solution": len(r.Solution), "tests": tests}
}

// maxGoldenTests bounds the tests of one problem. Of more tests, the set removes
// those that the fewest answers have failed.
const maxGoldenTests = 256

// goldenSet collects the distinct tests of a run. Its size is bounded by the
// number of problems and not by the length of the run.
type goldenSet struct{ problems map[string]*goldenProblem }

type goldenProblem struct {
	problem events.Problem
	tests   map[goldenTest]*goldenCount
	next    int // order of the next new test
}

type goldenTest struct{ call, expected string }

type goldenCount struct {
	order  int // rank by the first occurrence of the test
	failed int // executions that failed it
}

func newGoldenSet() *goldenSet { return &goldenSet{problems: make(map[string]*goldenProblem)} }

// add adds the kept tests of a group. The ground truth runs them, and they expect
// its value.
func (s *goldenSet) add(problem *events.Problem, g *events.CodeExecuted) {
	p := s.problems[problem.ID]
	if p == nil {
		p = &goldenProblem{problem: *problem, tests: make(map[goldenTest]*goldenCount)}
		p.problem.Golden = nil
		s.problems[problem.ID] = p
	}
	for m := range g.Answers {
		for n := range g.Answers[m].Suites {
			for i := range g.Answers[m].Suites[n].Tests {
				t := &g.Answers[m].Suites[n].Tests[i]
				if t.Status != events.StatusKept {
					continue
				}
				key := goldenTest{t.Call, t.Expected}
				c := p.tests[key]
				if c == nil {
					c = &goldenCount{order: p.next}
					p.tests[key] = c
					p.next++
				}
				c.failed += count(t.Verdict.Failed())
			}
		}
	}
	if len(p.tests) > 2*maxGoldenTests {
		for _, t := range p.ranked()[maxGoldenTests:] {
			delete(p.tests, t)
		}
	}
}

// ranked returns the tests by the number of failures, the largest first.
func (p *goldenProblem) ranked() []goldenTest {
	return slices.SortedFunc(maps.Keys(p.tests), func(x, y goldenTest) int {
		a, b := p.tests[x], p.tests[y]
		return cmp.Or(cmp.Compare(b.failed, a.failed), cmp.Compare(a.order, b.order))
	})
}

// rows returns the problems with tests, by ID.
func (s *goldenSet) rows(run string) []GoldenRow {
	var rows []GoldenRow
	for _, id := range slices.Sorted(maps.Keys(s.problems)) {
		p := s.problems[id]
		if len(p.tests) == 0 {
			continue
		}
		row := GoldenRow{ID: id, Source: "codea1 run " + run, Question: p.problem.Question, EntryPoint: p.problem.EntryPoint, Solution: p.problem.Solution}
		for _, t := range p.ranked()[:min(maxGoldenTests, len(p.tests))] {
			row.Tests = append(row.Tests, "assert "+t.call+" == "+t.expected)
		}
		rows = append(rows, row)
	}
	return rows
}
