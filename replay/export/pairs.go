package export

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"codea1/events"
	"codea1/replay/query"
)

// ErrNoPairs is returned for a log without a pair.
var ErrNoPairs = errors.New("no selected training group has two answers with different pass rates")

// maxPairs bounds the pairs of a group.
const maxPairs = 64

// The tests that a pass rate is about.
const (
	EvidenceGolden = "golden" // the golden tests of the problem, or the lines of a predict problem
	EvidenceCross  = "cross"  // the kept tests of all suites of the group, with their true values
	EvidenceSuites = "suites" // historical tests, and the kept tests of the answer's own suites
)

// PairRow is a pair of answers of a training group. The chosen one has the higher pass
// rate. A reward model learns from prompt, chosen and rejected, the texts that the judge
// sends to it.
type PairRow struct {
	GroupColumns
	Prompt         string  `json:"prompt" parquet:"prompt"`     // the question
	Chosen         string  `json:"chosen" parquet:"chosen"`     // code
	Rejected       string  `json:"rejected" parquet:"rejected"` // code
	ChosenAnswer   int     `json:"chosen_answer" parquet:"chosen_answer"`
	RejectedAnswer int     `json:"rejected_answer" parquet:"rejected_answer"`
	Evidence       string  `json:"evidence" parquet:"evidence,dict"`
	ChosenTests    int     `json:"chosen_tests" parquet:"chosen_tests"`
	RejectedTests  int     `json:"rejected_tests" parquet:"rejected_tests"`
	ChosenPass     float64 `json:"chosen_pass" parquet:"chosen_pass"`
	RejectedPass   float64 `json:"rejected_pass" parquet:"rejected_pass"`
}

func (r *PairRow) texts() map[string]int {
	return map[string]int{"prompt": len(r.Prompt), "chosen": len(r.Chosen), "rejected": len(r.Rejected)}
}

// passed is the number of tests that an answer passes, of those that it was asked.
type passed struct{ passes, tests int }

func (p passed) rate() float64 { return float64(p.passes) / float64(p.tests) }

// pairRows returns the pairs of a group: the largest differences in pass rates first, then
// those with the next answers of the group.
func pairRows(g *query.Lineage) []PairRow {
	if g.Code == nil && g.Tests == nil {
		return nil
	}
	evidence, results := passRates(g.Executed)
	codes := make([]string, len(results))
	for m := range results {
		if codes[m] = strings.TrimSpace(g.AnswerCode(m)); codes[m] == "" || g.Rewarded != nil && g.Rewarded.Code[m].Masked {
			results[m] = passed{}
		}
	}
	var rows []PairRow
	for better, b := range results {
		for worse, w := range results {
			// Without a test, both products are 0.
			if b.passes*w.tests <= w.passes*b.tests || codes[better] == codes[worse] {
				continue
			}
			rows = append(rows, PairRow{
				GroupColumns: groupColumns(g), Prompt: g.Posed.Problem.Question, Chosen: codes[better], Rejected: codes[worse],
				ChosenAnswer: better, RejectedAnswer: worse, Evidence: evidence,
				ChosenTests: b.tests, RejectedTests: w.tests, ChosenPass: b.rate(), RejectedPass: w.rate(),
			})
		}
	}
	distance := func(r *PairRow) int { return (r.RejectedAnswer - r.ChosenAnswer + len(results)) % len(results) }
	slices.SortFunc(rows, func(x, y PairRow) int {
		return cmp.Or(cmp.Compare(y.ChosenPass-y.RejectedPass, x.ChosenPass-x.RejectedPass),
			cmp.Compare(distance(&x), distance(&y)), cmp.Compare(x.ChosenAnswer, y.ChosenAnswer))
	})
	return rows[:min(len(rows), maxPairs)]
}

// passRates returns the results of the answers on the best tests that the group has. An
// answer that was lost to an infrastructure failure has no tests. One that does not load
// fails all.
func passRates(x *events.CodeExecuted) (evidence string, results []passed) {
	results = make([]passed, len(x.Answers))
	golden, crossed := 0, crossedTests(x)
	for m := range x.Answers {
		golden = max(golden, len(x.Answers[m].Golden))
	}
	evidence = EvidenceSuites
	switch {
	case golden > 0:
		evidence = EvidenceGolden
	case len(crossed) > 0:
		evidence = EvidenceCross
	}
	for m := range x.Answers {
		a, r := &x.Answers[m], &results[m]
		if a.Failure != "" {
			continue
		}
		switch evidence {
		case EvidenceGolden:
			r.tests = golden
			for i := range a.Golden {
				r.passes += count(a.Golden[i].Verdict == events.VerdictPass)
			}
		case EvidenceCross:
			r.tests = len(crossed)
			for _, bit := range crossed {
				r.passes += count(x.Cross.Passed[m].Has(bit))
			}
		case EvidenceSuites:
			*r = ownTests(a)
		}
		if !a.Loads {
			r.passes = 0
		}
	}
	return evidence, results
}

// ownTests returns the result of an answer on the historical tests and on its own suites.
func ownTests(a *events.ExecutedAnswer) (r passed) {
	for _, v := range a.Historical {
		r.tests++
		r.passes += count(v == events.VerdictPass)
	}
	for n := range a.Suites {
		for i := range a.Suites[n].Tests {
			if t := &a.Suites[n].Tests[i]; t.Status == events.StatusKept && a.Suites[n].Failure == "" {
				r.tests++
				r.passes += count(t.Verdict == events.VerdictPass)
			}
		}
	}
	return r
}

// crossedTests returns the kept tests with their true values, as bits in the rows of
// Cross. A group without Cross has none.
func crossedTests(x *events.CodeExecuted) (bits []int) {
	tests := x.CrossTests()
	if x.Cross == nil || x.Cross.Tests != len(tests) {
		return nil
	}
	kept := x.KeptTests()
	for i, test := range tests {
		if kept[test] {
			bits = append(bits, i)
		}
	}
	return bits
}
