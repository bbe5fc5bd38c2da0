package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// dots generates the reductions of products. Elements 32i to 32i+15 belong to the
// first block of 16 accumulators and the next 16 to the second. The remainder after
// the last whole block belongs to the second.
func (s isa) dots() {
	s.begin("dot", "func(a, b []float32) float32", "returns the sum of a*b over len(a).")
	a, b, n := base("a"), base("b"), length("a")
	sum := s.sumProducts("", n, s.remainder(n), fused(a, b))
	Store(sum, ReturnIndex(0))
	s.end()

	s.begin("dot3", "func(a, b, c []float32) float32", "returns the sum of a*b*c over len(a).")
	a, b, n = base("a"), base("b"), length("a")
	c := base("c")
	sum = s.sumProducts("", n, s.remainder(n), func(l lane, acc reg.VecVirtual) {
		x, y, z := l.load(a), l.load(b), l.load(c)
		VMULPS(y, x, x)
		VFMADD231PS(z, x, acc)
	})
	Store(sum, ReturnIndex(0))
	s.end()

	s.begin("dotRows", "func(dst, x, rows []float32, stride int)", "sets dst[i] to dot(x, rows[i*stride:]).")
	dst, count := base("dst"), length("dst")
	x, n := base("x"), length("x")
	row, stride := base("rows"), bytes("stride")
	t := s.remainder(n)
	TESTQ(count, count)
	JZ(LabelRef("done"))
	Label("row")
	left := GP64()
	MOVQ(n, left)
	sum = s.sumProducts("Row", left, t, fused(x, row))
	VMOVSS(sum, Mem{Base: dst})
	ADDQ(U8(floatBytes), dst)
	ADDQ(stride, row)
	DECQ(count)
	JNZ(LabelRef("row"))
	Label("done")
	s.end()
}

// remainder returns the mask of the elements of n after the last whole block.
func (s isa) remainder(n reg.GPVirtual) *tail {
	rest := GP64()
	MOVQ(n, rest)
	ANDQ(U8(blockLanes-1), rest)
	return s.tail(rest)
}

func fused(a, b reg.Register) func(l lane, acc reg.VecVirtual) {
	return func(l lane, acc reg.VecVirtual) {
		x := l.load(a)
		if l.tail == nil {
			VFMADD231PS(l.at(b), x, acc)
		} else {
			VFMADD231PS(l.load(b), x, acc)
		}
	}
}

// sumProducts reduces n elements to the first lane of the returned register. It
// changes n. body adds the products of one part to acc.
func (s isa) sumProducts(suffix string, n reg.GPVirtual, t *tail, body func(l lane, acc reg.VecVirtual)) reg.Register {
	acc := [2][]reg.VecVirtual{s.vecs(), s.vecs()}
	for part := range s.parts {
		s.zero(acc[0][part])
		s.zero(acc[1][part])
	}
	off := GP64()
	XORQ(off, off)
	block := func(i int, t *tail) {
		for part := range s.parts {
			body(lane{isa: s, part: part, off: off, tail: t}, acc[i][part])
		}
	}
	Label("pair" + suffix)
	CMPQ(n, U8(2*blockLanes))
	JL(LabelRef("single" + suffix))
	block(0, nil)
	ADDQ(U8(blockBytes), off)
	block(1, nil)
	ADDQ(U8(blockBytes), off)
	SUBQ(U8(2*blockLanes), n)
	JMP(LabelRef("pair" + suffix))
	Label("single" + suffix)
	CMPQ(n, U8(blockLanes))
	JL(LabelRef("rest" + suffix))
	block(0, nil)
	ADDQ(U8(blockBytes), off)
	SUBQ(U8(blockLanes), n)
	Label("rest" + suffix)
	TESTQ(n, n)
	JZ(LabelRef("fold" + suffix))
	block(1, t)
	Label("fold" + suffix)
	for part := range s.parts {
		VADDPS(acc[1][part], acc[0][part], acc[0][part])
	}
	return s.fold(acc[0], func(a, b, dst Op) { VADDPS(a, b, dst) })
}
