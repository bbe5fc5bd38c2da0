package evaluation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Comparison compares the results of two systems on the same problems, for one suite
// of tests.
type Comparison struct {
	Suite      string  `json:"tests"`
	Problems   int     `json:"problems"`   // of both
	First      float64 `json:"first"`      // avg@n
	Second     float64 `json:"second"`     // avg@n
	Difference float64 `json:"difference"` // second minus first
	Low        float64 `json:"low"`        // 95% interval of the difference over problems
	High       float64 `json:"high"`
	OnlyFirst  int     `json:"only_first"`  // problems that only the first solves
	OnlySecond int     `json:"only_second"` // problems that only the second solves
	McNemar    float64 `json:"mcnemar_p"`   // two-sided p-value of these two counts
}

// ErrNoCommon is returned for two results without a common problem.
var ErrNoCommon = errors.New("the two files have no problem in common")

// Compare compares two lists of results. The interval resamples problems, so it is
// that of paired differences. A problem is solved if more than half of its answers
// are correct.
func Compare(first, second []Result, s Suite) (Comparison, error) {
	other := map[string]*Result{}
	for i := range second {
		other[second[i].ID] = &second[i]
	}
	c := Comparison{Suite: s.Name}
	var as, bs, changes []float64
	for i := range first {
		a, b := &first[i], other[first[i].ID]
		if b == nil {
			continue
		}
		x, y := share(a.correct(s), len(a.Answers)), share(b.correct(s), len(b.Answers))
		as, bs, changes = append(as, x), append(bs, y), append(changes, y-x)
		switch {
		case a.Solved(s) && !b.Solved(s):
			c.OnlyFirst++
		case b.Solved(s) && !a.Solved(s):
			c.OnlySecond++
		}
	}
	if len(changes) == 0 {
		return c, ErrNoCommon
	}
	c.Problems, c.First, c.Second, c.Difference = len(changes), mean(as), mean(bs), mean(changes)
	if c.Low, c.High = Interval(changes); math.IsNaN(c.Low) { // one problem has no spread
		c.Low, c.High = c.Difference, c.Difference
	}
	c.McNemar = McNemar(c.OnlyFirst, c.OnlySecond)
	return c, nil
}

// McNemar returns the two-sided p-value of McNemar's exact test (McNemar 1947): the
// probability that of b+c fair coins at most min(b, c) show the rarer side, doubled,
// and at most 1. b and c count the problems that only one of two systems solves.
func McNemar(b, c int) float64 {
	n := b + c
	p := 0.0
	for i := range min(b, c) + 1 {
		p += math.Exp(logChoose(n, i) - float64(n)*math.Ln2)
	}
	return min(1, 2*p)
}

func logChoose(n, k int) float64 { return logFactorial(n) - logFactorial(k) - logFactorial(n-k) }

func logFactorial(n int) float64 {
	v, _ := math.Lgamma(float64(n) + 1)
	return v
}

// CompareCommand is `codea1 compare`.
type CompareCommand struct {
	First  string `arg:"" help:"Result of codea1 eval: the results file, or the run directory." type:"path"`
	Second string `arg:"" help:"Another result of the same benchmark." type:"path"`
	JSON   bool   `name:"json" help:"Print a JSON object per suite of tests."`
}

// Run prints the comparison of two results files.
func (c *CompareCommand) Run(out io.Writer) error {
	first, err := ReadResults(c.First)
	if err != nil {
		return err
	}
	second, err := ReadResults(c.Second)
	if err != nil {
		return err
	}
	var b strings.Builder
	if !c.JSON {
		fmt.Fprintf(&b, "first   %s\nsecond  %s\n\n%-10s %8s %7s %7s  %-30s %10s %11s %9s\n", c.First, c.Second,
			"TESTS", "PROBLEMS", "FIRST", "SECOND", "DIFFERENCE (95% INTERVAL)", "ONLY FIRST", "ONLY SECOND", "MCNEMAR P")
	}
	suites, hasPlus := Suites, func(r Result) bool { return !r.All }
	if !slices.ContainsFunc(first, hasPlus) && !slices.ContainsFunc(second, hasPlus) {
		suites = OneSuite
	}
	for _, s := range suites {
		r, err := Compare(first, second, s)
		if err != nil {
			return fmt.Errorf("compare %s with %s: %w", c.First, c.Second, err)
		}
		if c.JSON {
			line, err := json.Marshal(r)
			if err != nil {
				return err
			}
			b.Write(append(line, '\n'))
			continue
		}
		interval := fmt.Sprintf("%+.1f points (%+.1f to %+.1f)", 100*r.Difference, 100*r.Low, 100*r.High)
		fmt.Fprintf(&b, "%-10s %8d %6.1f%% %6.1f%%  %-30s %10d %11d %9.2g\n", r.Suite, r.Problems, 100*r.First, 100*r.Second, interval, r.OnlyFirst, r.OnlySecond, r.McNemar)
	}
	if left := len(first) + len(second); !c.JSON {
		if r, _ := Compare(first, second, Suites[0]); left > 2*r.Problems {
			fmt.Fprintf(&b, "\n%d problems are in one file only and do not count.\n", left-2*r.Problems)
		}
	}
	_, err = io.WriteString(out, b.String())
	return err
}
