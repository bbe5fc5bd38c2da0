package main

import (
	. "github.com/mmcloughlin/avo/build"
)

func (s isa) adamw() {
	s.begin("adamw", "func(w, m, v, g []float32, gradScale, beta1, beta1C, beta2, beta2C, rootScale, epsilon, rate, decay float32)",
		"takes one AdamW step over len(w).")
	w, m, v, g := base("w"), base("m"), base("v"), base("g")
	gradScale := s.broadcastParam("gradScale")
	beta1, beta1C := s.broadcastParam("beta1"), s.broadcastParam("beta1C")
	beta2, beta2C := s.broadcastParam("beta2"), s.broadcastParam("beta2C")
	rootScale, epsilon := s.broadcastParam("rootScale"), s.broadcastParam("epsilon")
	rate, decay := s.broadcastParam("rate"), s.broadcastParam("decay")
	s.each(length("w"), func(l lane) {
		grad, t := l.load(g), s.vec()
		VMULPS(gradScale, grad, grad)

		moment := l.load(m)
		VMULPS(beta1C, grad, t)
		VFMADD213PS(t, beta1, moment)
		l.store(moment, m)

		VMULPS(grad, grad, grad)
		VMULPS(beta2C, grad, grad)
		square := l.load(v)
		VFMADD213PS(grad, beta2, square)
		l.store(square, v)

		VSQRTPS(square, square)
		VFMADD213PS(epsilon, rootScale, square)
		VMULPS(rate, moment, moment)
		VDIVPS(square, moment, moment)
		weight := l.load(w)
		VFMSUB213PS(moment, decay, weight)
		l.store(weight, w)
	})
	s.end()
}
