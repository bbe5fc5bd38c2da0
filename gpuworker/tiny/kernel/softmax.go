package kernel

import "math"

// SoftmaxInPlace replaces x by exp(x-max)/Σexp(x-max) and returns the largest
// x and log Σ exp(x), so that the log-probability of entry i is the old x[i]
// minus logSumExp. Entries of -Inf become 0. A NaN or +Inf anywhere, or -Inf
// everywhere, makes every entry NaN. Both results are -Inf when x is empty.
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

// SoftmaxBackward sets dx, the gradient before a softmax, from its output p
// and the gradient dp after it: dx = p*(dp - Σ p*dp). dx may be dp.
func SoftmaxBackward(dx, p, dp []float32) {
	n := len(p)
	dx, dp = dx[:n], dp[:n]
	path := current()
	path.softmaxBackward(dx, p, dp, path.dot(p, dp))
}
