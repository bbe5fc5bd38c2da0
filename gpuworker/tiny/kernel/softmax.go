package kernel

import "math"

// SoftmaxInPlace replaces x by exp(x-max)/Σexp(x-max). It returns the largest x
// and log Σ exp(x): the log-probability of entry i is the old x[i] minus
// logSumExp. Entries of -Inf become 0. If an entry is NaN or +Inf, or all are -Inf,
// every entry becomes NaN. Both results are -Inf if x is empty.
func SoftmaxInPlace(x []float32) (largest, logSumExp float32) {
	if len(x) == 0 {
		none := float32(math.Inf(-1))
		return none, none
	}
	path := current()
	largest = path.maximum(x)
	sum := path.expSum(x, largest)
	path.scale(x, 1/sum)
	return largest, largest + float32(math.Log(float64(sum)))
}

// SoftmaxBackward sets dx to the gradient of a softmax's input. p is the softmax's
// output and dp the gradient of p: dx = p*(dp - Σ p*dp). dx may be dp.
func SoftmaxBackward(dx, p, dp []float32) {
	n := len(p)
	dx, dp = dx[:n], dp[:n]
	path := current()
	path.softmaxBackward(dx, p, dp, path.dot(p, dp))
}
