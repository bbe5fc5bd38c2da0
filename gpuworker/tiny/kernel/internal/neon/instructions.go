package main

// This file has one method per instruction on four float32 lanes. It has Arm's name
// and the destination first. Instructions that Go's assembler does not know are
// written as words.

func (f *function) word3(code uint32, name string, d, n, m vector) {
	f.op("WORD $%#08x // %s v%d.4s, v%d.4s, v%d.4s", code|uint32(m)<<16|uint32(n)<<5|uint32(d), name, d, n, m)
}

func (f *function) word2(code uint32, name string, d, n vector) {
	f.op("WORD $%#08x // %s v%d.4s, v%d.4s", code|uint32(n)<<5|uint32(d), name, d, n)
}

func (f *function) fadd(d, n, m vector) { f.word3(0x4e20d400, "fadd", d, n, m) }
func (f *function) fsub(d, n, m vector) { f.word3(0x4ea0d400, "fsub", d, n, m) }
func (f *function) fmul(d, n, m vector) { f.word3(0x6e20dc00, "fmul", d, n, m) }
func (f *function) fdiv(d, n, m vector) { f.word3(0x6e20fc00, "fdiv", d, n, m) }
func (f *function) fsqrt(d, n vector)   { f.word2(0x6ea1f800, "fsqrt", d, n) }
func (f *function) fneg(d, n vector)    { f.word2(0x6ea0f800, "fneg", d, n) }

// fcmgt sets the lanes of d where n > m to ones, the others to zeros.
func (f *function) fcmgt(d, n, m vector) { f.word3(0x6ea0e400, "fcmgt", d, n, m) }

// fcmltZero sets the lanes of d where n < 0 to ones, the others to zeros.
func (f *function) fcmltZero(d, n vector) {
	f.op("WORD $%#08x // fcmlt v%d.4s, v%d.4s, #0.0", 0x4ea0e800|uint32(n)<<5|uint32(d), d, n)
}

// fmla adds n*m to d, fused; fmls subtracts it.
func (f *function) fmla(d, n, m vector) { f.op("VFMLA %s, %s, %s", m.s4(), n.s4(), d.s4()) }
func (f *function) fmls(d, n, m vector) { f.op("VFMLS %s, %s, %s", m.s4(), n.s4(), d.s4()) }

// fmlaFirst adds n times the first lane of m to d, fused.
func (f *function) fmlaFirst(d, n, m vector) {
	f.op("WORD $%#08x // fmla v%d.4s, v%d.4s, v%d.s[0]", 0x4f801000|uint32(m)<<16|uint32(n)<<5|uint32(d), d, n, m)
}

// bic clears the bits of d that are set in m.
func (f *function) bic(d, m vector) {
	f.op("WORD $%#08x // bic v%d.16b, v%d.16b, v%d.16b", 0x4e601c00|uint32(m)<<16|uint32(d)<<5|uint32(d), d, d, m)
}

// bit copies the bits of n to d that are set in mask.
func (f *function) bit(d, n, mask vector) { f.op("VBIT %s, %s, %s", mask.b16(), n.b16(), d.b16()) }

func (f *function) orr(d, n, m vector)      { f.op("VORR %s, %s, %s", m.b16(), n.b16(), d.b16()) }
func (f *function) mov(d, n vector)         { f.op("VORR %s, %s, %s", n.b16(), n.b16(), d.b16()) }
func (f *function) zero(d vector)           { f.op("VEOR %s, %s, %s", d.b16(), d.b16(), d.b16()) }
func (f *function) addInts(d, n, m vector)  { f.op("VADD %s, %s, %s", m.s4(), n.s4(), d.s4()) }
func (f *function) shl(d, n vector, by int) { f.op("VSHL $%d, %s, %s", by, n.s4(), d.s4()) }

// turn sets d to n with its lanes rotated down by lanes.
func (f *function) turn(d, n vector, lanes int) {
	f.op("VEXT $%d, %s, %s, %s", lanes*floatBytes, n.b16(), n.b16(), d.b16())
}
