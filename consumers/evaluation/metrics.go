package evaluation

import (
	"math"
	"math/rand/v2"
	"slices"
)

// PassAtK estimates, from n answers of which c are correct, the probability
// that at least one of k answers is correct, without bias:
//
//	1 - C(n-c, k) / C(n, k)
//
// in the product form of Chen et al. 2021, "Evaluating Large Language Models
// Trained on Code" (arXiv 2107.03374, section 2.1), which does not overflow.
// There is no unbiased estimate for k > n. The result is NaN then, and for
// counts outside their bounds.
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

// Bootstrap settings. With 2,000 resamples the ends of a 95% interval differ
// from those of infinitely many by about a tenth of its width.
const (
	resamples      = 2000
	intervalLevel  = 0.95
	intervalSeed   = 1
	intervalStream = 2
)

// Interval returns the 95% percentile bootstrap interval of the mean of
// values (Efron and Tibshirani 1993, section 13.3). There is one value per
// problem. The resampling is seeded: equal values in the same order give equal
// intervals. Fewer than two values have no spread: the interval is (NaN, NaN).
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
	return percentiles(means)
}

// percentiles sorts means and returns the ends of the interval that they give.
func percentiles(means []float64) (low, high float64) {
	slices.Sort(means)
	cut := int(math.Round(resamples * (1 - intervalLevel) / 2))
	return means[cut], means[resamples-1-cut]
}
