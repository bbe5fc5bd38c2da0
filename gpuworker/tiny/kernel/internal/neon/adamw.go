package main

func adamw() []*function {
	f := newFunction("adamw", "func(w, m, v, g []float32, gradScale, beta1, beta1C, beta2, beta2C, rootScale, epsilon, rate, decay float32)",
		"takes one AdamW step over len(w).")
	w, m, v, g := f.base("w"), f.base("m"), f.base("v"), f.base("g")
	gradScale := f.broadcast("gradScale")
	beta1, beta1C := f.broadcast("beta1"), f.broadcast("beta1C")
	beta2, beta2C := f.broadcast("beta2"), f.broadcast("beta2C")
	rootScale, epsilon := f.broadcast("rootScale"), f.broadcast("epsilon")
	rate, decay := f.broadcast("rate"), f.broadcast("decay")
	f.each(f.length("w"), []general{w, m, v, g}, func(l lane) {
		grad, moment, square, root := l.load(g), l.vec(), l.vec(), l.vec()
		l.fmul(grad, grad, gradScale)

		l.fmul(moment, grad, beta1C)
		l.fmla(moment, beta1, l.load(m))
		l.store(moment, m)

		l.fmul(square, grad, grad)
		l.fmul(square, square, beta2C)
		l.fmla(square, beta2, l.load(v))
		l.store(square, v)

		l.fsqrt(square, square)
		l.mov(root, epsilon)
		l.fmla(root, rootScale, square)
		l.fmul(moment, moment, rate)
		l.fdiv(moment, moment, root)
		l.fneg(moment, moment) // so that decay*weight - step is one fused sum
		l.fmla(moment, decay, l.load(w))
		l.store(moment, w)
	})
	return []*function{f.end()}
}
