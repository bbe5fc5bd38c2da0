package main

import (
	. "github.com/mmcloughlin/avo/build"
)

func (s isa) rmsnorm() {
	s.begin("scaleMul", "func(dst, x, w []float32, s float32)", "sets dst = x*s*w over len(x).")
	dst, x, w, factor := base("dst"), base("x"), base("w"), s.broadcastParam("s")
	s.each(length("x"), func(l lane) {
		v := l.load(x)
		VMULPS(factor, v, v)
		VMULPS(l.load(w), v, v)
		l.store(v, dst)
	})
	s.end()

	s.begin("rmsBackward", "func(dx, dw, x, w, dy []float32, inv, down float32)",
		"adds dy*inv*x to dw and dy*inv*w - x*down to dx over len(x).")
	dx, dw, dy := base("dx"), base("dw"), base("dy")
	x, w = base("x"), base("w")
	inv, down := s.broadcastParam("inv"), s.broadcastParam("down")
	s.each(length("x"), func(l lane) {
		d, v := l.load(dy), l.load(x)
		VMULPS(inv, d, d)
		sum := l.load(dw)
		VFMADD231PS(v, d, sum)
		l.store(sum, dw)
		sum = l.load(dx)
		VFMADD231PS(l.load(w), d, sum)
		VFNMADD231PS(v, down, sum)
		l.store(sum, dx)
	})
	s.end()
}
