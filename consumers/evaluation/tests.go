package evaluation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// TestResult is the result of one suite on a ground truth and its mutants: a line of a
// file of test results.
type TestResult struct {
	ID       string `json:"id"`
	Suite    int    `json:"suite"`              // of the problem, from 0
	Written  int    `json:"written"`            // tests, at most as many as were asked for
	Passed   int    `json:"passed"`             // tests that the ground truth passes as stated
	Mutants  int    `json:"mutants"`            // that the tests ran on; 0 unless all tests pass that were asked for
	Survived int    `json:"survived"`           // mutants that pass all tests
	Branches int    `json:"branches,omitempty"` // of the ground truth; absent: it has none, or they are not measured
	Taken    int    `json:"taken,omitempty"`    // branches that the passing tests take

	Lines      int `json:"lines,omitempty"` // likewise
	TakenLines int `json:"taken_lines,omitempty"`

	Engine string `json:"mutants_by,omitempty"` // absent: builtin
}

// Key identifies the suite and the mutants.
func (r *TestResult) Key() string { return r.ID + "\x00" + strconv.Itoa(r.Suite) + "\x00" + r.Engine }

// ReadTestResult reads a line of a file of test results.
func ReadTestResult(line []byte) (*TestResult, error) {
	r := new(TestResult)
	err := json.Unmarshal(line, r)
	if err == nil && (r.ID == "" || r.Suite < 0 || r.Passed < 0 || r.Passed > r.Written || r.Survived < 0 || r.Survived > r.Mutants || r.Taken < 0 || r.Taken > r.Branches || r.TakenLines < 0 || r.TakenLines > r.Lines) {
		err = errors.New("want id, suite, written, passed, mutants, survived, branches, taken, lines and taken_lines")
	}
	if err != nil {
		return nil, fmt.Errorf("not a line of test results: %w", err)
	}
	return r, nil
}

// TestSummary has the figures of suites of K tests, in percent:
//
//	pass@K = 100 * passed / (K * suites)
//	mut@K  = mean over the suites with K tests that pass of 100 * (1 - survived / mutants)
//	Mul    = pass@K * mut@K / 100
//	branches = mean over the suites for programs with branches of 100 * taken / branches
//	lines  = the same for lines
//
// A suite for a program without mutants does not count in mut@K, which is 0 if no suite
// counts.
type TestSummary struct {
	Benchmark string  `json:"benchmark,omitempty"`
	K         int     `json:"k"`
	Suites    int     `json:"suites"`
	Pass      float64 `json:"pass"`
	Perfect   int     `json:"perfect"` // suites that count in Mut
	Mut       float64 `json:"mut"`
	Low       float64 `json:"mut_low"` // 95% interval of Mut over suites
	High      float64 `json:"mut_high"`
	Mul       float64 `json:"mul"`
	Branch    float64 `json:"branch"`   // of the branches, those that passing tests take
	Measured  int     `json:"measured"` // suites that count in Branch
	Line      float64 `json:"line"`     // of the lines, those that run when passing tests do
	Lined     int     `json:"lined"`    // suites that count in Line
}

// SummarizeTests returns the figures of suites of k tests. There is at least one result.
func SummarizeTests(results []*TestResult, k int) TestSummary {
	sum := TestSummary{K: k, Suites: len(results)}
	passed, killed, taken, lines := 0, []float64{}, []float64{}, []float64{}
	for _, r := range results {
		passed += min(r.Passed, k)
		if r.Branches > 0 {
			taken = append(taken, 100*share(r.Taken, r.Branches))
		}
		if r.Lines > 0 {
			lines = append(lines, 100*share(r.TakenLines, r.Lines))
		}
		if r.Passed >= k && r.Mutants > 0 {
			killed = append(killed, 100*(1-share(r.Survived, r.Mutants)))
		}
	}
	if sum.Measured = len(taken); len(taken) > 0 {
		sum.Branch = mean(taken)
	}
	if sum.Lined = len(lines); len(lines) > 0 {
		sum.Line = mean(lines)
	}
	sum.Pass, sum.Perfect = 100*share(passed, k*len(results)), len(killed)
	if len(killed) > 0 {
		sum.Mut = mean(killed)
	}
	if sum.Low, sum.High = Interval(killed); math.IsNaN(sum.Low) { // fewer than two have no spread
		sum.Low, sum.High = sum.Mut, sum.Mut
	}
	sum.Mul = sum.Pass * sum.Mut / 100
	return sum
}

// Print prints the figures as a table.
func (s *TestSummary) Print(out io.Writer) error {
	percent := func(figure float64, measured int) string {
		if measured == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f%%", figure)
	}
	_, err := fmt.Fprintf(out, "%s\n%6s  %7s  %8s  %-22s  %5s  %8s  %6s\n%6d  %6.1f%%  %8d  %5.1f%% (%5.1f - %5.1f%%)  %5.1f  %8s  %6s\n", s.Benchmark,
		"SUITES", fmt.Sprintf("PASS@%d", s.K), "ALL PASS", fmt.Sprintf("MUT@%d (95%% INTERVAL)", s.K), "MUL", "BRANCHES", "LINES",
		s.Suites, s.Pass, s.Perfect, s.Mut, s.Low, s.High, s.Mul, percent(s.Branch, s.Measured), percent(s.Line, s.Lined))
	return err
}
