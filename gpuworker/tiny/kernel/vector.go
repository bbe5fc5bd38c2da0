package kernel

// Dot returns Σ a[i]*b[i] over len(a). It panics if b is shorter.
func Dot(a, b []float32) float32 {
	return current().dot(a, b[:len(a)])
}

// DotRows sets dst[i] to the dot product of x with row i of a matrix. The matrix
// has len(dst) rows of len(x) elements with the given stride. This gives the
// attention scores of one head over its cached keys. dst must not overlap x or
// rows.
func DotRows(dst, x, rows []float32, stride int) {
	checkMatrix("rows", rows, len(dst), len(x), stride)
	current().dotRows(dst, x, rows, stride)
}

// Axpy adds alpha*x to y over len(x). It panics if y is shorter.
func Axpy(alpha float32, x, y []float32) {
	current().axpy(alpha, x, y[:len(x)])
}

// AxpyRows adds w[i] times row i of a matrix to y, in the order of i. The matrix
// has len(w) rows of len(y) elements with the given stride. This gives the
// weighted sum of one head's cached values. y must not overlap w or rows.
func AxpyRows(y, w, rows []float32, stride int) {
	checkMatrix("rows", rows, len(w), len(y), stride)
	current().axpyRows(y, w, rows, stride)
}
