package evaluation

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"codea1/events/commandline"
	"codea1/events/files"
	"codea1/events/rundir"
)

// Result is the result of one problem of a benchmark: a line of a results file.
type Result struct {
	ID      string   `json:"id"`
	Answers []Answer `json:"answers"`
	Chosen  *int     `json:"chosen,omitempty"` // the answer that a Test LLM's suites chose; nil without suites
	All     bool     `json:"all,omitempty"`    // the problem has no plus tests: base and plus are of all tests
}

// Answer is the result of one answer.
type Answer struct {
	Base      bool   `json:"base"`             // it loads and passes the base tests
	Plus      bool   `json:"plus"`             // and it passes the plus tests
	Code      string `json:"code_sha256"`      // of the answer's program
	Behaviour string `json:"behaviour"`        // equal for two answers with the same outcome of every test
	Reason    string `json:"reason,omitempty"` // why it does not pass
}

// Of reports whether the answers are these programs.
func (r *Result) Of(codes []string) bool {
	return slices.EqualFunc(r.Answers, codes, func(a Answer, code string) bool {
		sum := sha256.Sum256([]byte(code))
		return a.Code == hex.EncodeToString(sum[:])
	})
}

// Codes returns the hashes of the answers' programs.
func (r *Result) Codes() []string {
	codes := make([]string, len(r.Answers))
	for i := range r.Answers {
		codes[i] = r.Answers[i].Code
	}
	return codes
}

// Suite says which tests an answer has to pass.
type Suite struct {
	Name   string
	Passed func(*Answer) bool
}

// Suites are the two of EvalPlus.
var Suites = []Suite{
	{"base", func(a *Answer) bool { return a.Base }},
	{"base+plus", func(a *Answer) bool { return a.Plus }},
}

// OneSuite is that of problems without plus tests.
var OneSuite = []Suite{{"all", Suites[1].Passed}}

// correct returns the number of correct answers.
func (r *Result) correct(s Suite) int {
	n := 0
	for i := range r.Answers {
		if s.Passed(&r.Answers[i]) {
			n++
		}
	}
	return n
}

// Majority returns the answer that most answers agree with: the earliest of the
// largest set of answers with the same behaviour. Of two such sets, the one with
// the earlier first answer counts.
func (r *Result) Majority() *Answer {
	votes := map[string]int{}
	for i := range r.Answers {
		votes[r.Answers[i].Behaviour]++
	}
	var chosen *Answer
	for i := range r.Answers {
		if a := &r.Answers[i]; chosen == nil || votes[a.Behaviour] > votes[chosen.Behaviour] {
			chosen = a
		}
	}
	return chosen
}

// Solved reports whether more than half of the answers are correct.
func (r *Result) Solved(s Suite) bool { return 2*r.correct(s) > len(r.Answers) }

// Summary has the figures of results for one suite of tests. Its shares are within
// [0, 1].
type Summary struct {
	Benchmark string      `json:"benchmark,omitempty"` // empty if it has no name
	Suite     string      `json:"tests"`
	Problems  int         `json:"problems"`
	Answers   int         `json:"answers"` // of the problem with the fewest
	Avg       float64     `json:"avg"`     // mean over problems of the share of correct answers
	Low       float64     `json:"avg_low"` // 95% interval of Avg over problems
	High      float64     `json:"avg_high"`
	PassAt    []PassValue `json:"pass"`
	Majority  float64     `json:"majority"`         // share of problems with a correct majority answer
	Chosen    *float64    `json:"chosen,omitempty"` // share of problems with a correct chosen answer; nil unless each has one
}

// PassValue is pass@k.
type PassValue struct {
	K     int     `json:"k"`
	Value float64 `json:"value"`
}

// passAt are the k of pass@k, where every problem has as many answers. Another one is
// the number of answers itself.
var passAt = []int{1, 8, 32}

// Summarize returns the figures of results. Each has an answer.
func Summarize(results []Result, s Suite) Summary {
	sum := Summary{Suite: s.Name, Problems: len(results), Answers: math.MaxInt}
	var shares []float64
	chosen, all := 0, true
	for i := range results {
		r := &results[i]
		if all = all && r.Chosen != nil; all && s.Passed(&r.Answers[*r.Chosen]) {
			chosen++
		}
		sum.Answers = min(sum.Answers, len(r.Answers))
		shares = append(shares, share(r.correct(s), len(r.Answers)))
		if s.Passed(r.Majority()) {
			sum.Majority++
		}
	}
	sum.Avg, sum.Majority = mean(shares), sum.Majority/float64(len(results))
	if all {
		of := share(chosen, len(results))
		sum.Chosen = &of
	}
	if sum.Low, sum.High = Interval(shares); math.IsNaN(sum.Low) { // one problem has no spread
		sum.Low, sum.High = sum.Avg, sum.Avg
	}
	for _, k := range append(slices.DeleteFunc(slices.Clone(passAt), func(k int) bool { return k >= sum.Answers }), sum.Answers) {
		values := make([]float64, len(results))
		for i := range results {
			values[i] = PassAtK(len(results[i].Answers), results[i].correct(s), k)
		}
		sum.PassAt = append(sum.PassAt, PassValue{k, mean(values)})
	}
	return sum
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// EncodeSummaries prints the figures as a JSON object per suite.
func EncodeSummaries(out io.Writer, sums []Summary) error {
	for _, s := range sums {
		if err := json.NewEncoder(out).Encode(s); err != nil {
			return err
		}
	}
	return nil
}

// PrintSummaries prints the figures of the suites of one benchmark as a table.
func PrintSummaries(out io.Writer, sums []Summary) error {
	var b strings.Builder
	if name := sums[0].Benchmark; name != "" {
		fmt.Fprintln(&b, name)
	}
	header := fmt.Sprintf("%-10s %8s %7s  %-22s", "TESTS", "PROBLEMS", "ANSWERS", "AVG (95% INTERVAL)")
	for _, p := range sums[0].PassAt {
		header += fmt.Sprintf("  %7s", fmt.Sprintf("PASS@%d", p.K))
	}
	header += "  MAJORITY"
	if sums[0].Chosen != nil {
		header += "  CHOSEN"
	}
	fmt.Fprintln(&b, header)
	for _, s := range sums {
		fmt.Fprintf(&b, "%-10s %8d %7d  %5.1f%% (%5.1f - %5.1f%%)", s.Suite, s.Problems, s.Answers, 100*s.Avg, 100*s.Low, 100*s.High)
		for _, p := range s.PassAt {
			fmt.Fprintf(&b, "  %6.1f%%", 100*p.Value)
		}
		fmt.Fprintf(&b, "  %7.1f%%", 100*s.Majority)
		if s.Chosen != nil {
			fmt.Fprintf(&b, "  %5.1f%%", 100**s.Chosen)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// ReadResults reads a results file, or that of a run directory. The error names the
// line.
func ReadResults(path string) ([]Result, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = rundir.Results(path)
	}
	text, err := files.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, commandline.Wrong(fmt.Errorf("no results: %w; name the run directory of codea1 eval, or the file of its --out", err))
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = text.Close() }() // it was only read
	all := Results{}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, maxResultBytes)
	for number := 1; lines.Scan(); number++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := all.Add(lines.Bytes()); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: it has no results", path)
	}
	return all.Sorted(), nil
}

// maxResultBytes bounds a line of a results file.
const maxResultBytes = 64 << 20

// Results are results by problem.
type Results map[string]Result

// Add adds a line of a results file.
func (all Results) Add(line []byte) error {
	var r Result
	err := json.Unmarshal(line, &r)
	if err == nil && (r.ID == "" || len(r.Answers) == 0) {
		err = errors.New("want id and answers")
	}
	if err == nil && r.Chosen != nil && (*r.Chosen < 0 || *r.Chosen >= len(r.Answers)) {
		err = fmt.Errorf("chosen is %d, but there are %d answers", *r.Chosen, len(r.Answers))
	}
	if _, twice := all[r.ID]; err == nil && twice {
		err = fmt.Errorf("problem %s occurs twice", r.ID)
	}
	if err != nil {
		return fmt.Errorf("not a result of codea1 eval: %w", err)
	}
	all[r.ID] = r
	return nil
}

// Sorted returns the results in the order of the problems' IDs.
func (all Results) Sorted() []Result {
	return slices.SortedFunc(maps.Values(all), func(a, b Result) int { return strings.Compare(a.ID, b.ID) })
}
