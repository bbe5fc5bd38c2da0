package evaluation

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Share returns the share of true values; 0 for none. Its mean over problems
// is avg@k, with k answers per problem.
func Share(correct []bool) float64 {
	if len(correct) == 0 {
		return 0
	}
	return float64(count(correct)) / float64(len(correct))
}

// PassAtK estimates, from n answers of which c are correct, the probability
// that at least one of k answers is correct, without bias:
//
//	1 - C(n-c, k) / C(n, k)
//
// in the product form of Chen et al. 2021, "Evaluating Large Language Models
// Trained on Code" (arXiv 2107.03374, section 2.1), which does not overflow.
// There is no unbiased estimate for k > n: it is NaN there, and for counts
// that make no sense.
func PassAtK(n, c, k int) float64 {
	if c < 0 || c > n || k < 1 || k > n {
		return math.NaN()
	}
	if n-c < k {
		return 1
	}
	miss := 1.0
	for i := n - c + 1; i <= n; i++ {
		miss *= 1 - float64(k)/float64(i)
	}
	return 1 - miss
}

// Bootstrap settings. 2,000 resamples put the ends of a 95% interval within
// about a tenth of its width of where infinitely many would.
const (
	resamples      = 2000
	intervalLevel  = 0.95
	intervalSeed   = 1
	intervalStream = 2
)

// Interval returns the 95% percentile bootstrap interval of the mean of
// values (Efron and Tibshirani 1993, section 13.3), resampling values, which
// are one per problem. The resampling is seeded: equal values give equal
// intervals. Fewer than two values say nothing about their spread: the
// interval is (NaN, NaN).
func Interval(values []float64) (low, high float64) {
	n := len(values)
	if n < 2 {
		return math.NaN(), math.NaN()
	}
	random := rand.New(rand.NewPCG(intervalSeed, intervalStream))
	means := make([]float64, resamples)
	for r := range means {
		sum := 0.0
		for range n {
			sum += values[random.IntN(n)]
		}
		means[r] = sum / float64(n)
	}
	slices.Sort(means)
	cut := int(math.Round(resamples * (1 - intervalLevel) / 2))
	return means[cut], means[resamples-1-cut]
}

func count(values []bool) int {
	n := 0
	for _, v := range values {
		if v {
			n++
		}
	}
	return n
}
