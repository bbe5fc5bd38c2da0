package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

var minusInf = constant("minusInf", float32(math.Inf(-1)))

func (s isa) softmax() {
	s.begin("maximum", "func(x []float32) float32", "returns the largest element that is not NaN, or -Inf.")
	x, largest := base("x"), s.vecs()
	for _, v := range largest {
		VMOVUPS(minusInf, v)
	}
	s.each(length("x"), func(l lane) {
		v := l.loadOr(x, minusInf)
		// For a NaN and a number VMAXPS returns this first operand.
		VMAXPS(largest[l.part], v, largest[l.part])
	})
	Store(s.fold(largest, func(a, b, dst Op) { VMAXPS(a, b, dst) }), ReturnIndex(0))
	s.end()

	s.begin("expSum", "func(x []float32, max float32) float32", "replaces x by exp(x-max) and returns its sum.")
	x, top, sum := base("x"), s.broadcastParam("max"), s.vecs()
	for _, v := range sum {
		s.zero(v)
	}
	s.each(length("x"), func(l lane) {
		v := l.load(x)
		VSUBPS(top, v, v)
		e := s.exp(v)
		l.clip(e)
		l.store(e, x)
		VADDPS(e, sum[l.part], sum[l.part])
	})
	Store(s.fold(sum, func(a, b, dst Op) { VADDPS(a, b, dst) }), ReturnIndex(0))
	s.end()

	s.begin("scale", "func(x []float32, s float32)", "multiplies x by s.")
	x, factor := base("x"), s.broadcastParam("s")
	s.each(length("x"), func(l lane) {
		v := l.load(x)
		VMULPS(factor, v, v)
		l.store(v, x)
	})
	s.end()

	s.begin("softmaxBackward", "func(dx, p, dp []float32, s float32)", "sets dx = p*(dp-s) over len(p).")
	dx, p, dp, mean := base("dx"), base("p"), base("dp"), s.broadcastParam("s")
	s.each(length("p"), func(l lane) {
		v, d := l.load(p), l.load(dp)
		VSUBPS(mean, d, d)
		VMULPS(d, v, v)
		l.store(v, dx)
	})
	s.end()
}
