package main

// dots generates the reductions of products. Elements 32i to 32i+15 belong to the
// first block of accumulators and the next 16 to the second. The remainder after
// the last whole block belongs to the second.
func dots() []*function {
	dot := newFunction("dot", "func(a, b []float32) float32", "returns the sum of a*b over len(a).")
	a, b := dot.base("a"), dot.base("b")
	sum := dot.sumProducts(dot.length("a"), []general{a, b}, fused(a, b))
	dot.endWith(sum)

	dot3 := newFunction("dot3", "func(a, b, c []float32) float32", "returns the sum of a*b*c over len(a).")
	a, b = dot3.base("a"), dot3.base("b")
	c := dot3.base("c")
	sum = dot3.sumProducts(dot3.length("a"), []general{a, b, c}, func(l lane, acc vector) {
		x, y, z := l.load(a), l.load(b), l.load(c)
		l.fmul(x, x, y)
		l.fmla(acc, x, z)
	})
	dot3.endWith(sum)

	return []*function{dot, dot3, dotRows()}
}

func dotRows() *function {
	f := newFunction("dotRows", "func(dst, x, rows []float32, stride int)", "sets dst[i] to dot(x, rows[i*stride:]).")
	dst, count := f.base("dst"), f.length("dst")
	x, n := f.base("x"), f.length("x")
	rows, stride := f.base("rows"), f.bytes("stride")
	again, done := f.label("row"), f.label("rowsDone")
	f.mark(again)
	f.op("CBZ %v, %s", count, done)
	f.scratch(func() {
		a, b, left := f.copied(x), f.copied(rows), f.copied(n)
		sum := f.sumProducts(left, []general{a, b}, fused(a, b))
		f.op("FMOVS %s, (%v)", sum.f(), dst)
	})
	f.op("ADD $%d, %v", floatBytes, dst)
	f.op("ADD %v, %v", stride, rows)
	f.op("SUB $1, %v", count)
	f.op("B %s", again)
	f.mark(done)
	return f.end()
}

func fused(a, b general) func(l lane, acc vector) {
	return func(l lane, acc vector) { l.fmla(acc, l.load(a), l.load(b)) }
}

// sumProducts reduces n elements to the first lane of the returned register. body
// adds the products of one part to acc.
func (f *function) sumProducts(n general, pointers []general, body func(l lane, acc vector)) vector {
	first, second := f.vecs(blockParts), f.vecs(blockParts)
	zero := f.vec()
	f.zero(zero)
	for part := range blockParts {
		f.zero(first[part])
		f.zero(second[part])
	}
	f.reduce(n, pointers, first, second, second, zero, body)
	for part := range blockParts {
		f.fadd(first[part], first[part], second[part])
	}
	return f.foldSum(first)
}
