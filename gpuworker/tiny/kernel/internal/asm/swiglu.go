package main

import (
	. "github.com/mmcloughlin/avo/build"
)

func (s isa) swiglu() {
	s.begin("swiglu", "func(dst, gate, up []float32)", "sets dst = silu(gate)*up over len(gate).")
	dst, gate, up := base("dst"), base("gate"), base("up")
	s.each(length("gate"), func(l lane) {
		g := l.load(gate)
		silu := s.sigmoid(g)
		VMULPS(g, silu, silu)
		VMULPS(l.load(up), silu, silu)
		l.store(silu, dst)
	})
	s.end()

	s.begin("swigluBackward", "func(dGate, dUp, gate, up, dOut []float32)", "sets the gradients of swiglu over len(gate).")
	dGate, dUp := base("dGate"), base("dUp")
	gate, up = base("gate"), base("up")
	dOut := base("dOut")
	s.each(length("gate"), func(l lane) {
		g := l.load(gate)
		sig := s.sigmoid(g)
		silu, u, d := g, l.load(up), l.load(dOut)
		VMULPS(sig, g, silu)
		VMULPS(d, u, u)
		VMULPS(silu, d, d)
		l.store(d, dUp)
		slope := s.vec() // sig + silu*(1-sig)
		VMOVUPS(one, slope)
		VSUBPS(sig, slope, slope)
		VFMADD213PS(sig, silu, slope)
		VMULPS(u, slope, slope)
		l.store(slope, dGate)
	})
	s.end()
}
