package kernel

import "math"

// exp(x) = 2^n * exp(r), where n is the integer nearest to x/ln 2 and |r| is at
// most ln(2)/2. There the error of the Taylor polynomial of degree 7 is below
// 6e-9. Adding roundMagic moves n into the low bits of the mantissa. ln 2 is the
// sum of ln2High and ln2Low, so that n*ln2High is exact. The assembly uses the
// same constants.
const (
	log2E      = 1.4426950408889634
	roundMagic = 0x1.8p23
	ln2High    = 0.693359375 // 9 significant bits
	ln2Low     = -2.1219444005469058e-4
	// expFloor is the smallest argument: below it 2^n is not a normal number and
	// the result is 0.
	expFloor = -87
)

// expScalar returns exp(x) for x <= 0; NaN stays NaN.
func expScalar(x float32) float32 {
	if x < expFloor {
		return 0
	}
	t := float32(x*log2E) + roundMagic
	n := t - roundMagic
	r := x - float32(n*ln2High)
	r -= float32(n * ln2Low)
	e := float32(1.0 / 5040)
	e = float32(e*r) + 1.0/720
	e = float32(e*r) + 1.0/120
	e = float32(e*r) + 1.0/24
	e = float32(e*r) + 1.0/6
	e = float32(e*r) + 0.5
	e = float32(e*r) + 1
	e = float32(e*r) + 1
	return e * math.Float32frombits(math.Float32bits(t)<<23+math.Float32bits(1))
}

// sigmoidScalar returns 1/(1+exp(-x)). It computes only exp(-|x|), which cannot
// overflow.
func sigmoidScalar(x float32) float32 {
	e := expScalar(-float32(math.Abs(float64(x))))
	if x < 0 {
		return e / (1 + e)
	}
	return 1 / (1 + e)
}
