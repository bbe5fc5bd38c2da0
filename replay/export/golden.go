package export

import (
	"cmp"
	"maps"
	"slices"

	"codea1/events"
)

// GoldenRow is one problem with tests that a run has generated for it, as
// `codea1 train --problems` reads it: the paper's "generated tests as
// supervision".
type GoldenRow struct {
	ID         string   `json:"id" parquet:"id"`
	Source     string   `json:"source" parquet:"source,dict"`
	Question   string   `json:"question" parquet:"question"`
	EntryPoint string   `json:"entry_point" parquet:"entry_point"`
	Solution   string   `json:"solution" parquet:"solution"`
	Tests      []string `json:"tests" parquet:"tests"`
}

func (r *GoldenRow) size() int {
	n := len(r.Question) + len(r.Solution)
	for _, t := range r.Tests {
		n += len(t)
	}
	return n
}

func (*GoldenRow) texts() []string { return []string{"question", "solution", "tests"} }

// maxGoldenTests bounds the tests that are kept of one problem. When there are
// more, those that fewest answers have failed go.
const maxGoldenTests = 256

// goldenSet gathers the distinct tests of a run. Its size is that of the
// problem set, whatever the run's length.
type goldenSet struct{ problems map[string]*goldenProblem }

type goldenProblem struct {
	problem events.Problem
	tests   map[goldenTest]*goldenCount
	met     int // tests that came up, those included that went
}

type goldenTest struct{ call, expected string }

type goldenCount struct {
	order  int // by when the test first came up
	failed int // runs that failed it
}

func newGoldenSet() *goldenSet { return &goldenSet{problems: make(map[string]*goldenProblem)} }

// add takes in the tests that were kept for a group: they run on the ground
// truth, and expect its value.
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
					c = &goldenCount{order: p.met}
					p.tests[key] = c
					p.met++
				}
				c.failed += count(t.Verdict.Failed())
			}
		}
	}
	if len(p.tests) > 2*maxGoldenTests {
		p.trim()
	}
}

// ranked returns the tests, those that most runs failed first.
func (p *goldenProblem) ranked() []goldenTest {
	return slices.SortedFunc(maps.Keys(p.tests), func(x, y goldenTest) int {
		a, b := p.tests[x], p.tests[y]
		return cmp.Or(cmp.Compare(b.failed, a.failed), cmp.Compare(a.order, b.order), cmp.Compare(x.call, y.call), cmp.Compare(x.expected, y.expected))
	})
}

func (p *goldenProblem) trim() {
	for _, t := range p.ranked()[maxGoldenTests:] {
		delete(p.tests, t)
	}
}

// rows returns the problems that have tests, by ID.
func (s *goldenSet) rows(run string) []GoldenRow {
	var rows []GoldenRow
	for _, id := range slices.Sorted(maps.Keys(s.problems)) {
		p := s.problems[id]
		if len(p.tests) == 0 {
			continue
		}
		row := GoldenRow{ID: id, Source: "codea1 run " + run, Question: p.problem.Question, EntryPoint: p.problem.EntryPoint, Solution: p.problem.Solution}
		for i, t := range p.ranked() {
			if i == maxGoldenTests {
				break
			}
			row.Tests = append(row.Tests, "assert "+t.call+" == "+t.expected)
		}
		rows = append(rows, row)
	}
	return rows
}
