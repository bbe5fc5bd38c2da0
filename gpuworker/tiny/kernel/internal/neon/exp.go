package main

// expConstants holds the constants of scalar_exp.go in registers.
type expConstants struct {
	log2E, roundMagic, ln2High, ln2Low, floor, one vector
	taylor                                         []vector // 1/7!, 1/6!, ... 1/0!
}

func (f *function) expConstants() expConstants {
	c := expConstants{
		log2E: f.constant(1.4426950408889634), roundMagic: f.constant(0x1.8p23),
		ln2High: f.constant(0.693359375), ln2Low: f.constant(-2.1219444005469058e-4),
		floor: f.constant(-87), one: f.constant(1),
	}
	for _, x := range []float32{1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5} {
		c.taylor = append(c.taylor, f.constant(x))
	}
	c.taylor = append(c.taylor, c.one, c.one)
	return c
}

// exp returns exp(x) for x <= 0, as in scalar_exp.go. It does not change x.
func (f *function) exp(c expConstants, x vector) vector {
	t, n, r, e, next := f.vec(), f.vec(), f.vec(), f.vec(), f.vec()
	f.mov(t, c.roundMagic)
	f.fmla(t, x, c.log2E)
	f.fsub(n, t, c.roundMagic)
	f.mov(r, x)
	f.fmls(r, n, c.ln2High)
	f.fmls(r, n, c.ln2Low)
	f.mov(e, c.taylor[0])
	for _, term := range c.taylor[1:] {
		f.mov(next, term)
		f.fmla(next, e, r)
		e, next = next, e
	}
	// 2^n comes from the low bits of t. The product keeps NaN.
	f.shl(t, t, 23)
	f.addInts(t, t, c.one)
	f.fmul(e, e, t)
	f.fcmgt(n, c.floor, x)
	f.bic(e, n)
	return e
}

// sigmoid returns 1/(1+exp(-x)), computed with exp(-|x|). It does not change x.
func (f *function) sigmoid(c expConstants, signBit, x vector) vector {
	negative := f.vec()
	f.orr(negative, x, signBit)
	e := f.exp(c, negative)
	numerator, negativeX := f.vec(), negative
	f.mov(numerator, c.one)
	f.fcmltZero(negativeX, x)
	f.bit(numerator, e, negativeX)
	f.fadd(e, e, c.one)
	f.fdiv(numerator, numerator, e)
	return numerator
}
