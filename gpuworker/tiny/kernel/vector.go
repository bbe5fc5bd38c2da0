package kernel

// Dot returns Σ a[i]*b[i] over len(a). It panics when b is shorter.
func Dot(a, b []float32) float32 {
	return current().dot(a, b[:len(a)])
}

// DotRows sets dst[i] to the dot product of x with row i of a matrix of
// len(dst) rows of len(x) elements that start stride apart: one head's
// attention scores over its cached keys. dst must not overlap x or rows.
func DotRows(dst, x, rows []float32, stride int) {
	checkMatrix("rows", rows, len(dst), len(x), stride)
	current().dotRows(dst, x, rows, stride)
}

// Axpy adds alpha*x to y, over len(x). It panics when y is shorter.
func Axpy(alpha float32, x, y []float32) {
	current().axpy(alpha, x, y[:len(x)])
}

// AxpyRows adds w[i] times row i to y, in the order of i, for a matrix of
// len(w) rows of len(y) elements that start stride apart: one head's weighted
// sum of its cached values. y must not overlap w or rows.
func AxpyRows(y, w, rows []float32, stride int) {
	checkMatrix("rows", rows, len(w), len(y), stride)
	current().axpyRows(y, w, rows, stride)
}
