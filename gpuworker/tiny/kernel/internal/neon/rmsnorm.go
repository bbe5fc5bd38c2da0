package main

func rmsnorm() []*function {
	f := newFunction("scaleMul", "func(dst, x, w []float32, s float32)", "sets dst = x*s*w over len(x).")
	dst, x, w, factor := f.base("dst"), f.base("x"), f.base("w"), f.broadcast("s")
	f.each(f.length("x"), []general{dst, x, w}, func(l lane) {
		v := l.load(x)
		l.fmul(v, v, factor)
		l.fmul(v, v, l.load(w))
		l.store(v, dst)
	})

	back := newFunction("rmsBackward", "func(dx, dw, x, w, dy []float32, inv, down float32)",
		"adds dy*inv*x to dw and dy*inv*w - x*down to dx over len(x).")
	dx, dw, dy := back.base("dx"), back.base("dw"), back.base("dy")
	x, w = back.base("x"), back.base("w")
	inv, down := back.broadcast("inv"), back.broadcast("down")
	back.each(back.length("x"), []general{dx, dw, x, w, dy}, func(l lane) {
		d, v := l.load(dy), l.load(x)
		l.fmul(d, d, inv)
		sum := l.load(dw)
		l.fmla(sum, d, v)
		l.store(sum, dw)
		sum = l.load(dx)
		l.fmla(sum, d, l.load(w))
		l.fmls(sum, v, down)
		l.store(sum, dx)
	})
	return []*function{f.end(), back.end()}
}
