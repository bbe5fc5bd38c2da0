package evaluation

import (
	"math"

	"codea1/events"
)

// Summary holds the figures of one evaluation. Shares and probabilities are
// within [0, 1], and NaN where nothing was measured.
type Summary struct {
	Tag    string
	Groups int // groups posed
	Scored int // of those, scored so far; the rest is under way or was dropped

	// Code LLM.
	Problems int       // problems with at least one scored answer
	Answers  int       // answers scored
	Avg      float64   // avg@k: the mean over problems of the share of correct answers
	AvgLow   float64   // 95% bootstrap interval of Avg over problems
	AvgHigh  float64   //
	PassAt   []float64 // pass@1, pass@2, ... up to the fewest answers that a problem has

	// Test LLM.
	Suites         int
	ValidOfStated  float64 // valid tests / tests written
	ValidOfWanted  float64 // valid tests / tests asked for; over 1 when more were written
	Defective      int     // suites written for a defective answer
	FoundDefective float64 // of those, the share that shows the defect
}

// Summarize folds the scored groups of one evaluation. Their order does not
// matter beyond rounding.
func Summarize(tag string, scored []*events.EvalScored) Summary {
	s := Summary{Tag: tag, Scored: len(scored)}
	var shares []float64
	var counts [][2]int // answers and correct answers per problem
	var wanted, stated, valid, found int
	for _, e := range scored {
		s.Groups = max(s.Groups, e.Plan.Groups)
		if len(e.Correct) > 0 {
			shares = append(shares, Share(e.Correct))
			counts = append(counts, [2]int{len(e.Correct), count(e.Correct)})
			s.Answers += len(e.Correct)
		}
		s.Suites += e.Suites
		s.Defective += e.Defective
		wanted += e.Wanted
		stated += e.Stated
		valid += e.Valid
		found += e.Found
	}
	s.Problems = len(shares)
	s.Avg = mean(shares)
	s.AvgLow, s.AvgHigh = Interval(shares)
	s.PassAt = passAt(counts)
	s.ValidOfStated = share(valid, stated)
	s.ValidOfWanted = share(valid, wanted)
	s.FoundDefective = share(found, s.Defective)
	return s
}

// passAt stops at the fewest answers of a problem, so that every entry is a
// mean over the same problems.
func passAt(counts [][2]int) []float64 {
	if len(counts) == 0 {
		return nil
	}
	fewest := counts[0][0]
	for _, c := range counts {
		fewest = min(fewest, c[0])
	}
	out := make([]float64, fewest)
	for k := range out {
		for _, c := range counts {
			out[k] += PassAtK(c[0], c[1], k+1) / float64(len(counts))
		}
	}
	return out
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values)) // NaN for none: 0/0
}

func share(part, whole int) float64 {
	if whole == 0 {
		return math.NaN()
	}
	return float64(part) / float64(whole)
}
