package main

// axpys generates y += alpha*x and y += Σ w[i]*rows[i] with one fused product per
// element and term, in the order of the terms.
func axpys() []*function {
	f := newFunction("axpy", "func(alpha float32, x, y []float32)", "adds alpha*x to y, over len(x).")
	alpha, x, y := f.broadcast("alpha"), f.base("x"), f.base("y")
	f.each(f.length("x"), []general{x, y}, func(l lane) {
		v := l.load(y)
		l.fmla(v, alpha, l.load(x))
		l.store(v, y)
	})
	return []*function{f.end(), axpyRows()}
}

func axpyRows() *function {
	f := newFunction("axpyRows", "func(y, w, rows []float32, stride int)", "adds w[i]*rows[i*stride:] to y for each i in order.")
	y, n := f.base("y"), f.length("y")
	w, count := f.base("w"), f.length("w")
	rows, stride := f.base("rows"), f.bytes("stride")
	done := f.label("done")
	f.op("CBZ %v, %s", count, done)
	// columns computes the columns of y in steps of parts registers, without the
	// remainder. All sums of a step are in registers.
	columns := func(parts, elements int, shape lane) {
		again, next := f.label("columns"), f.label("next")
		f.mark(again)
		f.op("CMP $%d, %v", elements, n)
		f.op("BLT %s", next)
		f.scratch(func() {
			lanes := make([]lane, parts)
			acc := make([]vector, parts)
			for i := range lanes {
				lanes[i] = shape
				lanes[i].function, lanes[i].offset = f, i*partBytes
				acc[i] = lanes[i].load(y)
			}
			row, weight, left := f.copied(rows), f.copied(w), f.copied(count)
			term := f.label("term")
			f.mark(term)
			x := f.vec()
			f.op("FMOVS.P %d(%v), %s", floatBytes, weight, x.f())
			for i, l := range lanes {
				f.scratch(func() { f.fmlaFirst(acc[i], l.load(row), x) })
			}
			f.op("ADD %v, %v", stride, row)
			f.op("SUBS $1, %v", left)
			f.op("BNE %s", term)
			for i, l := range lanes {
				l.store(acc[i], y)
			}
		})
		f.advance(elements, n, []general{y, rows})
		f.op("B %s", again)
		f.mark(next)
	}
	columns(4*blockParts, 4*blockLanes, lane{whole: true})
	columns(blockParts, blockLanes, lane{whole: true})
	columns(1, partLanes, lane{whole: true})
	columns(1, 1, lane{alone: true})
	f.mark(done)
	return f.end()
}
