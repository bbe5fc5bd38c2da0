package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// axpys generates y += alpha*x and y += Σ w[i]*rows[i] with one fused product per
// element and term, in the order of the terms.
func (s isa) axpys() {
	s.begin("axpy", "func(alpha float32, x, y []float32)", "adds alpha*x to y, over len(x).")
	alpha, x, y := s.broadcastParam("alpha"), base("x"), base("y")
	s.each(length("x"), func(l lane) {
		v, u := l.load(y), l.load(x)
		VFMADD231PS(u, alpha, v)
		l.store(v, y)
	})
	s.end()

	s.begin("axpyRows", "func(y, w, rows []float32, stride int)", "adds w[i]*rows[i*stride:] to y for each i in order.")
	y, n := base("y"), length("y")
	w, count := base("w"), length("w")
	rows, stride := base("rows"), bytes("stride")
	TESTQ(count, count)
	JZ(LabelRef("done"))
	// Blocks of columns with all sums in registers.
	s.columns("four", 4, y, n, w, count, rows, stride)
	s.columns("one", 1, y, n, w, count, rows, stride)
	TESTQ(n, n)
	JZ(LabelRef("done"))
	s.sumRows("rest", 1, s.tail(n), y, w, count, rows, stride)
	Label("done")
	s.end()
}

// columns computes the columns of y in steps of blocks blocks, without the
// remainder.
func (s isa) columns(name string, blocks int, y, n, w, count, rows, stride reg.GPVirtual) {
	Label(name)
	CMPQ(n, U8(blocks*blockLanes))
	JL(LabelRef(name + "End"))
	s.sumRows(name, blocks, nil, y, w, count, rows, stride)
	ADDQ(U32(blocks*blockBytes), y)
	ADDQ(U32(blocks*blockBytes), rows)
	SUBQ(U8(blocks*blockLanes), n)
	JMP(LabelRef(name))
	Label(name + "End")
}

func (s isa) sumRows(name string, blocks int, t *tail, y, w, count, rows, stride reg.GPVirtual) {
	lanes := make([]lane, blocks*s.parts)
	acc := make([]reg.VecVirtual, len(lanes))
	for i := range lanes {
		lanes[i] = lane{isa: s, part: i, tail: t}
		acc[i] = lanes[i].load(y)
	}
	row, weight, left := GP64(), GP64(), GP64()
	MOVQ(rows, row)
	MOVQ(w, weight)
	MOVQ(count, left)
	Label(name + "Row")
	x := s.broadcast(Mem{Base: weight})
	for i, l := range lanes {
		if t == nil {
			VFMADD231PS(l.at(row), x, acc[i])
		} else {
			VFMADD231PS(l.load(row), x, acc[i])
		}
	}
	ADDQ(U8(floatBytes), weight)
	ADDQ(stride, row)
	DECQ(left)
	JNZ(LabelRef(name + "Row"))
	for i, l := range lanes {
		l.store(acc[i], y)
	}
}
