package main

func swiglu() []*function {
	f := newFunction("swiglu", "func(dst, gate, up []float32)", "sets dst = silu(gate)*up over len(gate).")
	dst, gate, up := f.base("dst"), f.base("gate"), f.base("up")
	c, signBit := f.expConstants(), f.bits(1<<31)
	f.each(f.length("gate"), []general{dst, gate, up}, func(l lane) {
		g := l.load(gate)
		silu := l.sigmoid(c, signBit, g)
		l.fmul(silu, silu, g)
		l.fmul(silu, silu, l.load(up))
		l.store(silu, dst)
	})

	back := newFunction("swigluBackward", "func(dGate, dUp, gate, up, dOut []float32)", "sets the gradients of swiglu over len(gate).")
	dGate, dUp := back.base("dGate"), back.base("dUp")
	gate, up = back.base("gate"), back.base("up")
	dOut := back.base("dOut")
	c, signBit = back.expConstants(), back.bits(1<<31)
	back.each(back.length("gate"), []general{dGate, dUp, gate, up, dOut}, func(l lane) {
		g, u, d := l.load(gate), l.load(up), l.load(dOut)
		sigmoid := l.sigmoid(c, signBit, g)
		silu, slope := g, l.vec()
		l.fmul(silu, g, sigmoid)
		l.fmul(u, u, d)
		l.fmul(d, d, silu)
		l.store(d, dUp)
		l.fsub(slope, c.one, sigmoid) // then sigmoid + silu*(1-sigmoid)
		l.fmla(sigmoid, silu, slope)
		l.fmul(u, u, sigmoid)
		l.store(u, dGate)
	})
	return []*function{f.end(), back.end()}
}
