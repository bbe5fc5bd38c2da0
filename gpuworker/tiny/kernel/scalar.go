package kernel

import "math"

// scalarPath is plain Go. Every product is converted to float32 before it is added.
// The conversion prevents a fused multiply-add, so that all architectures give the
// same bits.
var scalarPath = path{
	name:            "scalar",
	tall:            tile{rows: 32, panels: 1, run: tileScalar},
	wide:            tile{rows: 32, panels: 1, run: tileScalar},
	dot:             dotScalar,
	dot3:            dot3Scalar,
	dotRows:         dotRowsScalar,
	axpy:            axpyScalar,
	axpyRows:        axpyRowsScalar,
	maximum:         maximumScalar,
	expSum:          expSumScalar,
	scale:           scaleScalar,
	softmaxBackward: softmaxBackwardScalar,
	swiglu:          swigluScalar,
	swigluBackward:  swigluBackwardScalar,
	scaleMul:        scaleMulScalar,
	rmsBackward:     rmsBackwardScalar,
	adamw:           adamwScalar,
}

func dotScalar(a, b []float32) float32 {
	b = b[:len(a)]
	var s [4]float32
	for len(a) >= 4 && len(b) >= 4 {
		s[0] += float32(a[0] * b[0])
		s[1] += float32(a[1] * b[1])
		s[2] += float32(a[2] * b[2])
		s[3] += float32(a[3] * b[3])
		a, b = a[4:], b[4:]
	}
	for i, v := range a {
		s[i] += float32(v * b[i])
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

func dot3Scalar(a, b, c []float32) float32 {
	var s float32
	for i, v := range a {
		s += float32(float32(v*b[i]) * c[i])
	}
	return s
}

func dotRowsScalar(dst, x, rows []float32, stride int) {
	for i := range dst {
		dst[i] = dotScalar(x, rows[i*stride:][:len(x)])
	}
}

func axpyScalar(alpha float32, x, y []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += float32(alpha * v)
	}
}

func axpyRowsScalar(y, w, rows []float32, stride int) {
	for i, v := range w {
		axpyScalar(v, rows[i*stride:][:len(y)], y)
	}
}

func maximumScalar(x []float32) float32 {
	largest := float32(math.Inf(-1))
	for _, v := range x {
		if v > largest {
			largest = v
		}
	}
	return largest
}

func expSumScalar(x []float32, largest float32) float32 {
	var sum float32
	for i, v := range x {
		e := expScalar(v - largest)
		x[i] = e
		sum += e
	}
	return sum
}

func scaleScalar(x []float32, s float32) {
	for i := range x {
		x[i] *= s
	}
}

func softmaxBackwardScalar(dx, p, dp []float32, s float32) {
	for i, v := range p {
		dx[i] = v * (dp[i] - s)
	}
}

func swigluScalar(dst, gate, up []float32) {
	for i, g := range gate {
		dst[i] = g * sigmoidScalar(g) * up[i]
	}
}

func swigluBackwardScalar(dGate, dUp, gate, up, dOut []float32) {
	for i, g := range gate {
		u, d := up[i], dOut[i]
		s := sigmoidScalar(g)
		silu := float32(g * s)
		dUp[i] = d * silu
		dGate[i] = d * u * (s + float32(silu*(1-s)))
	}
}

func scaleMulScalar(dst, x, w []float32, s float32) {
	for i, v := range x {
		dst[i] = v * s * w[i]
	}
}

func rmsBackwardScalar(dx, dw, x, w, dy []float32, inv, down float32) {
	for i, v := range x {
		d := float32(dy[i] * inv)
		dw[i] += float32(d * v)
		dx[i] += float32(d*w[i]) - float32(v*down)
	}
}

// adamwScalar takes the factors of one step: beta1C = 1-beta1, beta2C = 1-beta2,
// rootScale = 1/sqrt(1-beta2^t), rate = LearningRate/(1-beta1^t) and
// decay = 1-LearningRate*WeightDecay.
func adamwScalar(w, m, v, g []float32, gradScale, beta1, beta1C, beta2, beta2C, rootScale, epsilon, rate, decay float32) {
	for i := range w {
		gi := float32(g[i] * gradScale)
		mi := float32(beta1*m[i]) + float32(beta1C*gi)
		vi := float32(beta2*v[i]) + float32(beta2C*float32(gi*gi))
		m[i], v[i] = mi, vi
		root := float32(math.Sqrt(float64(vi)))
		step := float32(rate*mi) / (float32(root*rootScale) + epsilon)
		w[i] = float32(w[i]*decay) - step
	}
}
