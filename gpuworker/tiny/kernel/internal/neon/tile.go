package main

import "fmt"

// tiles generates the micro-kernels. 24 of the 32 registers hold a block of C, the
// others a column of A and two registers of B.
func tiles() []*function {
	return []*function{tile("tileTall", 6, 1), tile("tileWide", 3, 2)}
}

func tile(name string, maxRows, panels int) *function {
	f := newFunction(name, "func(rows, k int, a []float32, aRow, aStep int, b []float32, bPanel int, c []float32, ldc int, load bool)",
		fmt.Sprintf("is a tileFunc of 1 to %d rows and %d columns.", maxRows, panels*blockLanes))
	rows := f.integer("rows")
	labels := make([]string, maxRows)
	for r := 1; r < maxRows; r++ {
		labels[r] = f.label("rows")
		f.op("CMP $%d, %v", r, rows)
		f.op("BEQ %s", labels[r])
	}
	for r := maxRows; r >= 1; r-- {
		if r < maxRows {
			f.mark(labels[r])
		}
		f.scratch(func() { f.tileOf(r, panels) })
		f.op("RET")
	}
	return f
}

// tileOf generates the code for the given number of rows. Every element is one
// accumulator, to which each step of k adds one fused product.
func (f *function) tileOf(rows, panels int) {
	k := f.integer("k")
	a := []general{f.base("a")}
	aRow, aStep := f.bytes("aRow"), f.bytes("aStep")
	for r := 1; r < rows; r++ {
		next := f.gen()
		f.op("ADD %v, %v, %v", aRow, a[r-1], next)
		a = append(a, next)
	}
	b := []general{f.base("b")}
	bPanel := f.bytes("bPanel")
	for p := 1; p < panels; p++ {
		next := f.gen()
		f.op("ADD %v, %v, %v", bPanel, b[p-1], next)
		b = append(b, next)
	}
	c, ldc := f.base("c"), f.bytes("ldc")
	acc := make([][]vector, rows)
	for r := range acc {
		acc[r] = f.vecs(panels * blockParts)
	}
	// rowsOfC calls pair for each pair of registers of C.
	rowsOfC := func(pair func(row general, offset int, v, w vector)) {
		f.scratch(func() {
			row := f.copied(c)
			for r := range acc {
				for i := 0; i < len(acc[r]); i += 2 {
					pair(row, i*partBytes, acc[r][i], acc[r][i+1])
				}
				if r < rows-1 {
					f.op("ADD %v, %v", ldc, row)
				}
			}
		})
	}

	column := f.gen()
	f.op("MOVD ZR, %v", column)
	zero, step := f.label("zero"), f.label("step")
	f.scratch(func() {
		load := f.gen()
		f.op("MOVBU %s, %v", f.address("load", ""), load)
		f.op("CBZ %v, %s", load, zero)
	})
	rowsOfC(func(row general, offset int, v, w vector) {
		f.op("FLDPQ %d(%v), (%s, %s)", offset, row, v.f(), w.f())
	})
	f.op("B %s", step)
	f.mark(zero)
	for _, row := range acc {
		for _, v := range row {
			f.zero(v)
		}
	}

	f.mark(step)
	x := f.vecs(rows)
	for r, v := range x {
		f.op("FMOVS (%v)(%v), %s", a[r], column, v.f())
	}
	f.op("ADD %v, %v", aStep, column)
	y := f.vecs(2)
	for i := 0; i < panels*blockParts; i += 2 {
		f.op("FLDPQ %d(%v), (%s, %s)", i%blockParts*partBytes, b[i/blockParts], y[0].f(), y[1].f())
		for r := range acc {
			f.fmlaFirst(acc[r][i], y[0], x[r])
			f.fmlaFirst(acc[r][i+1], y[1], x[r])
		}
	}
	for _, p := range b {
		f.op("ADD $%d, %v", blockBytes, p)
	}
	f.op("SUBS $1, %v", k)
	f.op("BNE %s", step)

	rowsOfC(func(row general, offset int, v, w vector) {
		f.op("FSTPQ (%s, %s), %d(%v)", v.f(), w.f(), offset, row)
	})
}
