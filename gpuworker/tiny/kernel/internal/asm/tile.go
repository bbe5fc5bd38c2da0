package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tiles generates the micro-kernels. A block of C is as tall or as wide as the
// registers allow with one row of B and a broadcast element of A.
func (s isa) tiles() {
	if s.wide() {
		s.tile("tileTall", 12, 2) // 24 accumulators of 32 registers
		s.tile("tileWide", 6, 4)
	} else {
		s.tile("tileTall", 6, 1) // 12 accumulators of 16 registers
		s.tile("tileWide", 3, 2)
	}
}

func (s isa) tile(name string, maxRows, panels int) {
	s.begin(name, "func(rows, k int, a []float32, aRow, aStep int, b []float32, bPanel int, c []float32, ldc int, load bool)",
		fmt.Sprintf("is a tileFunc of 1 to %d rows and %d columns.", maxRows, panels*blockLanes))
	rows := GP64()
	Load(Param("rows"), rows)
	for r := 1; r < maxRows; r++ {
		CMPQ(rows, U8(r))
		JE(LabelRef(fmt.Sprintf("rows%d", r)))
	}
	for r := maxRows; r >= 1; r-- {
		s.tileOf(r, panels)
	}
}

// tileOf generates the code for the given number of rows. Every element is one
// accumulator, to which each step of k adds one fused product.
func (s isa) tileOf(rows, panels int) {
	label := func(name string) string { return fmt.Sprintf("%s%d", name, rows) }
	Label(label("rows"))

	k := GP64()
	Load(Param("k"), k)
	a, aRow, aStep := s.rowBases(rows)
	b, bPanel := s.panelBases(panels)
	c, ldc := base("c"), bytes("ldc")

	acc := make([][]reg.VecVirtual, rows)
	for r := range acc {
		for range panels {
			acc[r] = append(acc[r], s.vecs()...)
		}
	}
	column := func(i int) int { return i * s.partBytes }

	load := GP8()
	Load(Param("load"), load)
	TESTB(load, load)
	JZ(LabelRef(label("zero")))
	row := GP64()
	MOVQ(c, row)
	for r := range acc {
		for i, v := range acc[r] {
			VMOVUPS(Mem{Base: row, Disp: column(i)}, v)
		}
		if r < rows-1 {
			ADDQ(ldc, row)
		}
	}
	JMP(LabelRef(label("step")))
	Label(label("zero"))
	for r := range acc {
		for _, v := range acc[r] {
			s.zero(v)
		}
	}

	Label(label("step"))
	aAt := func(r int) Mem {
		m := Mem{Base: a[r/3]}
		if r%3 != 0 {
			m.Index, m.Scale = aRow, uint8(r%3)
		}
		return m
	}
	bAt := func(i int) Mem {
		panel, part := i/s.parts, i%s.parts
		m := Mem{Base: b[panel/2], Disp: part * s.partBytes}
		if panel%2 != 0 {
			m.Index, m.Scale = bPanel, 1
		}
		return m
	}
	s.step(acc, aAt, bAt)
	for _, p := range a {
		ADDQ(aStep, p)
	}
	for _, p := range b {
		ADDQ(U8(blockBytes), p)
	}
	DECQ(k)
	JNZ(LabelRef(label("step")))

	for r := range acc {
		for i, v := range acc[r] {
			VMOVUPS(v, Mem{Base: c, Disp: column(i)})
		}
		if r < rows-1 {
			ADDQ(ldc, c)
		}
	}
	s.end()
}

// step adds one column of A times one row of B. It keeps the shorter one in
// registers and reads the other element by element, because AVX2 has only 16
// registers.
func (s isa) step(acc [][]reg.VecVirtual, aAt, bAt func(i int) Mem) {
	if columns := len(acc[0]); columns <= 2 || s.wide() {
		b := make([]reg.VecVirtual, columns)
		for i := range b {
			b[i] = s.vec()
			VMOVUPS(bAt(i), b[i])
		}
		for r := range acc {
			x := s.broadcast(aAt(r))
			for i, v := range acc[r] {
				VFMADD231PS(b[i], x, v)
			}
		}
		return
	}
	x := make([]reg.VecVirtual, len(acc))
	for r := range x {
		x[r] = s.broadcast(aAt(r))
	}
	for i := range acc[0] {
		b := s.vec()
		VMOVUPS(bAt(i), b)
		for r := range acc {
			VFMADD231PS(b, x[r], acc[r][i])
		}
	}
}

// rowBases returns pointers to every third row of A. The code reaches the two rows
// after it by index, so that 12 rows need only 5 registers.
func (s isa) rowBases(rows int) (bases []reg.GPVirtual, aRow, aStep reg.GPVirtual) {
	aRow, aStep = bytes("aRow"), bytes("aStep")
	bases = append(bases, base("a"))
	for r := 3; r < rows; r += 3 {
		next := GP64()
		LEAQ(Mem{Base: bases[len(bases)-1], Index: aRow, Scale: 2}, next)
		ADDQ(aRow, next)
		bases = append(bases, next)
	}
	return bases, aRow, aStep
}

// panelBases returns pointers to every second panel of B.
func (s isa) panelBases(panels int) (bases []reg.GPVirtual, bPanel reg.GPVirtual) {
	bPanel = bytes("bPanel")
	bases = append(bases, base("b"))
	for p := 2; p < panels; p += 2 {
		next := GP64()
		LEAQ(Mem{Base: bases[len(bases)-1], Index: bPanel, Scale: 2}, next)
		bases = append(bases, next)
	}
	return bases, bPanel
}

// bytes loads a stride parameter, which counts elements.
func bytes(name string) reg.GPVirtual {
	r := GP64()
	Load(Param(name), r)
	SHLQ(U8(2), r)
	return r
}
