package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The constants of scalar_exp.go.
var (
	log2E      = constant("log2E", 1.4426950408889634)
	roundMagic = constant("roundMagic", 0x1.8p23)
	ln2High    = constant("ln2High", 0.693359375)
	ln2Low     = constant("ln2Low", -2.1219444005469058e-4)
	expFloor   = constant("expFloor", -87)
	one        = constant("one", 1)
	signBit    = constantBits("signBit", 1<<31)

	// taylor holds 1/7!, 1/6!, ... 1/0!.
	taylor = []Mem{
		constant("taylor7", 1.0/5040),
		constant("taylor6", 1.0/720),
		constant("taylor5", 1.0/120),
		constant("taylor4", 1.0/24),
		constant("taylor3", 1.0/6),
		constant("taylor2", 0.5),
		one,
		one,
	}
)

// Predicates of VCMPPS that do not signal on NaN.
const (
	notLess = 0x15
	less    = 0x11
)

// exp returns exp(x) for x <= 0, as in scalar_exp.go. It does not change x.
func (s isa) exp(x reg.VecVirtual) reg.VecVirtual {
	t, n, r, e := s.vec(), s.vec(), s.vec(), s.vec()
	VMOVUPS(roundMagic, t)
	VFMADD231PS(log2E, x, t)
	VSUBPS(roundMagic, t, n)
	VMOVAPS(x, r)
	VFNMADD231PS(ln2High, n, r)
	VFNMADD231PS(ln2Low, n, r)
	VMOVUPS(taylor[0], e)
	for _, c := range taylor[1:] {
		VFMADD213PS(c, r, e)
	}
	// 2^n comes from the low bits of t. The product keeps NaN.
	VPSLLD(U8(23), t, t)
	VPADDD(one, t, t)
	VMULPS(t, e, e)
	if s.wide() {
		keep := K()
		VCMPPS(U8(notLess), expFloor, x, keep)
		VMOVAPS_Z(e, keep, e)
	} else {
		keep := YMM()
		VCMPPS(U8(notLess), expFloor, x, keep)
		VANDPS(keep, e, e)
	}
	return e
}

// sigmoid returns 1/(1+exp(-x)), computed with exp(-|x|). It does not change x.
func (s isa) sigmoid(x reg.VecVirtual) reg.VecVirtual {
	negative := s.vec()
	s.or(signBit, x, negative)
	e := s.exp(negative)
	numerator, denominator := s.vec(), s.vec()
	VADDPS(one, e, denominator)
	VMOVUPS(one, numerator)
	if s.wide() {
		zero, below := s.vec(), K()
		s.zero(zero)
		VCMPPS(U8(less), zero, x, below)
		VMOVAPS(e, below, numerator)
	} else {
		VBLENDVPS(x, e, numerator, numerator)
	}
	VDIVPS(denominator, numerator, numerator)
	return numerator
}
