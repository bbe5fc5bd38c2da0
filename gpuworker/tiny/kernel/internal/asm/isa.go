package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	floatBytes = 4
	blockLanes = 16 // elements per step of every vector loop
	blockBytes = blockLanes * floatBytes
)

// isa is an instruction set. A block of 16 elements has one part (an AVX-512
// register) or two parts (AVX2 registers).
type isa struct {
	name      string
	parts     int // registers per block
	partBytes int
}

var (
	avx2   = isa{name: "AVX2", parts: 2, partBytes: 32}
	avx512 = isa{name: "AVX512", parts: 1, partBytes: 64}
)

func (s isa) wide() bool { return s.parts == 1 }

// vec returns a new register.
func (s isa) vec() reg.VecVirtual {
	if s.wide() {
		return ZMM()
	}
	return YMM()
}

// vecs returns one new register per part of a block.
func (s isa) vecs() []reg.VecVirtual {
	v := make([]reg.VecVirtual, s.parts)
	for i := range v {
		v[i] = s.vec()
	}
	return v
}

func (s isa) zero(v reg.VecVirtual) {
	if s.wide() {
		VPXORD(v, v, v)
	} else {
		VXORPS(v, v, v)
	}
}

// or sets dst to the bitwise a|b.
func (s isa) or(a, b, dst Op) {
	if s.wide() {
		VPORD(a, b, dst)
	} else {
		VORPS(a, b, dst)
	}
}

// begin starts a function. Its name ends with the instruction set.
func (s isa) begin(name, signature, doc string) {
	TEXT(name+s.name, attr.NOSPLIT, signature)
	Doc(fmt.Sprintf("%s%s %s", name, s.name, doc))
	Pragma("noescape")
}

// end ends the function. VZEROUPPER avoids a state change in SSE code that follows.
func (s isa) end() {
	VZEROUPPER()
	RET()
}

// constant returns memory with value in every lane of the widest register.
func constant(name string, value float32) Mem {
	return constantBits(name, math.Float32bits(value))
}

func constantBits(name string, bits uint32) Mem {
	m := GLOBL(name, attr.RODATA|attr.NOPTR)
	for i := range blockLanes {
		DATA(i*floatBytes, U32(bits))
	}
	return m
}

// tailMask has 16 lanes of ones, then 16 lanes of zeros. The mask of an AVX2
// remainder of n elements starts at lane 16-n.
var tailMask = func() Mem {
	m := GLOBL("tailMask", attr.RODATA|attr.NOPTR)
	for i := range 2 * blockLanes {
		bits := ^uint32(0)
		if i >= blockLanes {
			bits = 0
		}
		DATA(i*floatBytes, U32(bits))
	}
	return m
}()

// tail is the mask of a remainder of fewer than 16 elements.
type tail struct {
	k    reg.OpmaskVirtual // AVX-512
	base reg.GPVirtual     // AVX2: address in tailMask of the first part's mask
}

// tail prepares the mask for the first n < 16 lanes.
func (s isa) tail(n reg.GPVirtual) *tail {
	if s.wide() {
		bits := GP32()
		MOVQ(n, reg.RCX)
		MOVL(U32(1), bits)
		SHLL(reg.CL, bits)
		DECL(bits)
		k := K()
		KMOVW(bits, k)
		return &tail{k: k}
	}
	base, back := GP64(), GP64()
	LEAQ(tailMask.Offset(blockBytes), base)
	MOVQ(n, back)
	SHLQ(U8(2), back)
	SUBQ(back, base)
	return &tail{base: base}
}

// lane is one part of a block at the current offset off. tail is nil for a whole
// block.
type lane struct {
	isa
	part int
	off  reg.Register // bytes; nil for 0
	tail *tail
}

func (l lane) at(base reg.Register) Mem {
	m := Mem{Base: base, Disp: l.part * l.partBytes}
	if l.off != nil {
		m.Index, m.Scale = l.off, 1
	}
	return m
}

func (l lane) mask() reg.VecVirtual {
	m := YMM()
	VMOVUPS(Mem{Base: l.tail.base, Disp: l.part * l.partBytes}, m)
	return m
}

// load reads a part with zeros after the end.
func (l lane) load(base reg.Register) reg.VecVirtual {
	v := l.vec()
	switch {
	case l.tail == nil:
		VMOVUPS(l.at(base), v)
	case l.wide():
		VMOVUPS_Z(l.at(base), l.tail.k, v)
	default:
		VMASKMOVPS(l.at(base), l.mask(), v)
	}
	return v
}

func (l lane) store(v reg.VecVirtual, base reg.Register) {
	switch {
	case l.tail == nil:
		VMOVUPS(v, l.at(base))
	case l.wide():
		VMOVUPS(v, l.tail.k, l.at(base))
	default:
		VMASKMOVPS(v, l.mask(), l.at(base))
	}
}

// loadOr reads a part with fill after the end.
func (l lane) loadOr(base reg.Register, fill Mem) reg.VecVirtual {
	if l.tail == nil {
		return l.load(base)
	}
	v := l.vec()
	VMOVUPS(fill, v)
	if l.wide() {
		VMOVUPS(l.at(base), l.tail.k, v)
	} else {
		mask := l.mask()
		x := YMM()
		VMASKMOVPS(l.at(base), mask, x)
		VBLENDVPS(mask, x, v, v)
	}
	return v
}

// clip sets the lanes of v after the end to zero.
func (l lane) clip(v reg.VecVirtual) {
	switch {
	case l.tail == nil:
	case l.wide():
		VMOVAPS_Z(v, l.tail.k, v)
	default:
		VANDPS(l.mask(), v, v)
	}
}

// broadcast fills a register with a float32 parameter or a float32 in memory.
func (s isa) broadcast(m Op) reg.VecVirtual {
	v := s.vec()
	VBROADCASTSS(m, v)
	return v
}

func (s isa) broadcastParam(name string) reg.VecVirtual {
	basic, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return s.broadcast(basic.Addr)
}

func base(name string) reg.GPVirtual {
	r := GP64()
	Load(Param(name).Base(), r)
	return r
}

func length(name string) reg.GPVirtual {
	r := GP64()
	Load(Param(name).Len(), r)
	return r
}

// each runs body for the parts of all blocks of n elements, for the remainder with
// a mask. It changes n.
func (s isa) each(n reg.GPVirtual, body func(l lane)) {
	off := GP64()
	XORQ(off, off)
	Label("block")
	CMPQ(n, U8(blockLanes))
	JL(LabelRef("rest"))
	for part := range s.parts {
		body(lane{isa: s, part: part, off: off})
	}
	ADDQ(U8(blockBytes), off)
	SUBQ(U8(blockLanes), n)
	JMP(LabelRef("block"))
	Label("rest")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	t := s.tail(n)
	for part := range s.parts {
		body(lane{isa: s, part: part, off: off, tail: t})
	}
	Label("done")
}

// fold adds the 16 lanes of a block into its first lane, in halves. The order is the
// same for both instruction sets.
func (s isa) fold(v []reg.VecVirtual, add func(a, b, dst Op)) reg.Register {
	low := v[0].AsY()
	if s.wide() {
		high := YMM()
		VEXTRACTF64X4(U8(1), v[0], high)
		add(high, low, low)
	} else {
		add(v[1], low, low)
	}
	x, y := v[0].AsX(), XMM()
	VEXTRACTF128(U8(1), low, y)
	add(y, x, x)
	VPERMILPS(U8(0b01_00_11_10), x, y)
	add(y, x, x)
	VPERMILPS(U8(0b10_11_00_01), x, y)
	add(y, x, x)
	return x
}
