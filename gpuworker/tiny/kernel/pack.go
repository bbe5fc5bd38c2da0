package kernel

import "fmt"

const (
	// panelCols is the width of a packed panel: one AVX-512 register.
	panelCols = 16
	// pairCols is what columns are padded to, so that tiles may always take
	// two panels.
	pairCols = 2 * panelCols
)

// Packed is a matrix B[K,N] laid out for [MatMul]: panels of 16 columns, each
// storing its K rows one after the other, the last panels padded with zeros.
// The layout is the same on every path. The zero value is empty; a Packed may
// be read by many goroutines at once.
type Packed struct {
	K, N int
	data []float32 // [panels][K][panelCols], an even number of panels
}

// Pack fills dst with b: [k,n] row-major or, when transposed, [n,k] row-major
// as Hugging Face stores a linear layer's weight [out,in], so that MatMul
// computes x*Wᵀ. dst's memory is reused when large enough. It panics when b is
// shorter than k*n.
func Pack(dst *Packed, b []float32, k, n int, transposed bool) {
	ldb := n
	if transposed {
		ldb = k
	}
	PackView(dst, b, ldb, k, n, transposed)
}

// PackView is [Pack] for a matrix whose consecutive rows start ldb elements
// apart, such as one head's keys inside a buffer of all heads.
func PackView(dst *Packed, b []float32, ldb, k, n int, transposed bool) {
	if transposed {
		checkMatrix("B", b, n, k, ldb)
	} else {
		checkMatrix("B", b, k, n, ldb)
	}
	size := packedCols(n) * k
	if cap(dst.data) < size {
		dst.data = make([]float32, size)
	}
	dst.K, dst.N, dst.data = k, n, dst.data[:size]
	if transposed {
		packTransposed(dst.data, b, ldb, k, n)
	} else {
		packPanels(dst.data, k*panelCols, b, ldb, k, n)
	}
}

// packedCols is n padded to whole pairs of panels.
func packedCols(n int) int {
	return (n + pairCols - 1) / pairCols * pairCols
}

// packPanels copies b[k,n] into panels that start panelLen elements apart,
// padding with zeros to a pair of panels.
func packPanels(dst []float32, panelLen int, b []float32, ldb, k, n int) {
	for j := 0; j < packedCols(n); j += panelCols {
		panel := dst[j/panelCols*panelLen:][:k*panelCols]
		switch cols := n - j; {
		case cols >= panelCols:
			for p := range k {
				*(*[panelCols]float32)(panel[p*panelCols:]) = [panelCols]float32(b[p*ldb+j:])
			}
		case cols > 0:
			clear(panel)
			for p := range k {
				copy(panel[p*panelCols:], b[p*ldb+j:][:cols])
			}
		default:
			clear(panel)
		}
	}
}

// packTransposed lays out the [n,k] matrix b as its transpose, four rows of b
// at a time so that each step writes neighbours.
func packTransposed(dst, b []float32, ldb, k, n int) {
	for j := 0; j < packedCols(n); j += panelCols {
		panel := dst[j*k:][:k*panelCols]
		cols := min(panelCols, max(0, n-j))
		if cols < panelCols {
			clear(panel)
		}
		col := 0
		for ; col+4 <= cols; col += 4 {
			r0 := b[(j+col)*ldb:][:k]
			r1 := b[(j+col+1)*ldb:][:k]
			r2 := b[(j+col+2)*ldb:][:k]
			r3 := b[(j+col+3)*ldb:][:k]
			for p := range r0 {
				*(*[4]float32)(panel[p*panelCols+col:]) = [4]float32{r0[p], r1[p], r2[p], r3[p]}
			}
		}
		for ; col < cols; col++ {
			for p, v := range b[(j+col)*ldb:][:k] {
				panel[p*panelCols+col] = v
			}
		}
	}
}

// checkMatrix panics unless x holds rows of cols elements, stride apart: the
// assembly behind checks nothing.
func checkMatrix(name string, x []float32, rows, cols, stride int) {
	if rows < 0 || cols < 0 || stride < cols {
		panic(fmt.Sprintf("kernel: %s is %dx%d with rows %d apart", name, rows, cols, stride))
	}
	if rows == 0 || cols == 0 {
		return
	}
	if need := (rows-1)*stride + cols; len(x) < need {
		panic(fmt.Sprintf("kernel: %s holds %d elements, %dx%d with rows %d apart needs %d", name, len(x), rows, cols, stride, need))
	}
}
