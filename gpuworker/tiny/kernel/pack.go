package kernel

import "fmt"

const (
	// panelCols is the width of a packed panel: one AVX-512 register.
	panelCols = 16
	// pairCols is the width to which columns are padded, so that a tile can
	// always read two panels.
	pairCols = 2 * panelCols
)

// Packed is a matrix B[K,N] in the layout of [MatMul]: panels of 16 columns, each
// with its K rows one after the other. The last panels are padded with zeros. The
// layout is the same on every path. The zero value is empty. Goroutines may read
// a Packed concurrently.
type Packed struct {
	K, N int
	data []float32 // [panels][K][panelCols], an even number of panels
}

// Pack fills dst with b. b is [k,n] row-major or, if transposed, [n,k] row-major:
// Hugging Face stores a linear layer's weight as [out,in], and MatMul then
// computes x*Wᵀ. Pack reuses dst's memory if it is large enough. It panics if b is
// shorter than k*n.
func Pack(dst *Packed, b []float32, k, n int, transposed bool) {
	ldb := n
	if transposed {
		ldb = k
	}
	PackView(dst, b, ldb, k, n, transposed)
}

// PackView is [Pack] for a matrix with a row stride of ldb elements, such as the
// keys of one head in a buffer of all heads.
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

// packedCols returns n rounded up to pairs of panels.
func packedCols(n int) int {
	return (n + pairCols - 1) / pairCols * pairCols
}

// packPanels copies b[k,n] into panels with a stride of panelLen elements and pads
// them with zeros to a pair of panels.
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

// packTransposed packs the transpose of the [n,k] matrix b. It reads four rows of b
// together, so that each step writes neighbouring elements.
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

// checkMatrix panics unless x has rows of cols elements with the stride. The
// assembly has no checks.
func checkMatrix(name string, x []float32, rows, cols, stride int) {
	if rows < 0 || cols < 0 || stride < cols {
		panic(fmt.Sprintf("kernel: %s is %dx%d with row stride %d", name, rows, cols, stride))
	}
	if rows == 0 || cols == 0 {
		return
	}
	if need := (rows-1)*stride + cols; len(x) < need {
		panic(fmt.Sprintf("kernel: %s has %d elements, %dx%d with row stride %d needs %d", name, len(x), rows, cols, stride, need))
	}
}
