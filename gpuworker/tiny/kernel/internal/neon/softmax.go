package main

import "math"

func softmax() []*function {
	largest := newFunction("maximum", "func(x []float32) float32", "returns the largest element that is not NaN, or -Inf.")
	x := largest.base("x")
	minusInf := largest.constant(float32(math.Inf(-1)))
	acc, mask := largest.vecs(blockParts), largest.vec()
	for _, v := range acc {
		largest.mov(v, minusInf)
	}
	// A comparison instead of fmax: for a NaN and a number it keeps the number,
	// for equal values (also zeros of different sign) the first.
	largest.reduce(largest.length("x"), []general{x}, acc, nil, acc, minusInf, func(l lane, acc vector) {
		v := l.load(x)
		l.fcmgt(mask, v, acc)
		l.bit(acc, v, mask)
	})
	top := largest.fold(acc, func(a, b vector) {
		largest.fcmgt(mask, a, b)
		largest.bit(b, a, mask)
		largest.mov(a, b)
	})
	largest.endWith(top)

	scale := newFunction("scale", "func(x []float32, s float32)", "multiplies x by s.")
	x = scale.base("x")
	factor := scale.broadcast("s")
	scale.each(scale.length("x"), []general{x}, func(l lane) {
		v := l.load(x)
		l.fmul(v, v, factor)
		l.store(v, x)
	})

	back := newFunction("softmaxBackward", "func(dx, p, dp []float32, s float32)", "sets dx = p*(dp-s) over len(p).")
	dx, p, dp, mean := back.base("dx"), back.base("p"), back.base("dp"), back.broadcast("s")
	back.each(back.length("p"), []general{dx, p, dp}, func(l lane) {
		v, d := l.load(p), l.load(dp)
		l.fsub(d, d, mean)
		l.fmul(v, v, d)
		l.store(v, dx)
	})
	return []*function{largest, expSum(), scale.end(), back.end()}
}

// expSum computes the exponentials in one pass and their sum in a second pass. In
// the remainder the sum needs zeros, where exp would give ones.
func expSum() *function {
	f := newFunction("expSum", "func(x []float32, max float32) float32", "replaces x by exp(x-max) and returns its sum.")
	x, n, top := f.base("x"), f.length("x"), f.broadcast("max")
	again, left := f.copied(x), f.copied(n)
	f.scratch(func() {
		c := f.expConstants()
		f.each(n, []general{x}, func(l lane) {
			v := l.load(x)
			l.fsub(v, v, top)
			l.store(l.exp(c, v), x)
		})
	})
	sum, zero := f.vecs(blockParts), f.vec()
	f.zero(zero)
	for _, v := range sum {
		f.zero(v)
	}
	f.reduce(left, []general{again}, sum, nil, sum, zero, func(l lane, acc vector) { l.fadd(acc, acc, l.load(again)) })
	return f.endWith(f.foldSum(sum))
}
