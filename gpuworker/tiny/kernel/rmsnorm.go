package kernel

import "math"

// RMSNorm sets dst to x*inv*weight with inv = 1/sqrt(mean(x²)+eps). It returns inv
// for [RMSNormBackward]. All slices have len(x) elements, which is not 0. dst may
// be x.
func RMSNorm(dst, x, weight []float32, eps float32) (inv float32) {
	n := len(x)
	path := current()
	mean := path.dot(x, x) / float32(n)
	inv = 1 / float32(math.Sqrt(float64(mean+eps)))
	path.scaleMul(dst[:n], x, weight[:n], inv)
	return inv
}

// RMSNormBackward adds the gradients of [RMSNorm] to dx and dWeight. dy is the
// gradient of its output and inv its result:
//
//	dWeight += dy * x*inv
//	dx      += dy*weight*inv - x * inv³/n * Σ dy*weight*x
//
// All slices have len(x) elements, which is not 0, and none may overlap dx or
// dWeight.
func RMSNormBackward(dx, dWeight, x, weight, dy []float32, inv float32) {
	n := len(x)
	dx, dWeight, weight, dy = dx[:n], dWeight[:n], weight[:n], dy[:n]
	path := current()
	sum := path.dot3(dy, weight, x)
	path.rmsBackward(dx, dWeight, x, weight, dy, inv, inv*inv*inv*sum/float32(n))
}
