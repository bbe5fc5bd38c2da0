package kernel

import "sync"

// MatMul computes C = A*B, or C += A*B if accumulate is set, for A[m,K], B[K,N]
// and C[m,N]. The row strides of A and C are lda and ldc elements. C must not
// overlap A. MatMul panics if a slice is too short for its shape.
//
// Each element is the chain c = c + a[p]*b[p] over ascending p, which starts with
// 0 or, if accumulate is set, with C. A row of C does not depend on m.
func MatMul(c []float32, ldc int, a []float32, lda int, m int, b *Packed, accumulate bool) {
	checkMatrix("A", a, m, b.K, lda)
	checkMatrix("C", c, m, b.N, ldc)
	if b.K == 0 && !accumulate {
		for i := range m {
			clear(c[i*ldc:][:b.N])
		}
	}
	current().multiply(product{
		m: m, k: b.K, n: b.N,
		a: a, aRow: lda, aStep: 1,
		b: b.data, bPanel: b.K * panelCols,
		c: c, ldc: ldc, load: accumulate,
	})
}

// chunkRows is the largest number of rows of B that MatMulTA packs together. A
// pair of panels with these rows is 16 KiB, half of the smallest first-level
// cache.
const chunkRows = 128

var chunks = sync.Pool{New: func() any { return new([chunkRows * pairCols]float32) }}

// MatMulTA computes C[k,n] += A[m,k]ᵀ * B[m,n], the gradient of a weight: A and B
// have one row per token. The row strides are lda, ldb and ldc elements. C must
// not overlap A or B. MatMulTA panics if a slice is too short for its shape.
//
// Each element is a chain over ascending m that starts with C, so two calls on
// consecutive rows equal one call on all rows.
func MatMulTA(c []float32, ldc int, a []float32, lda int, b []float32, ldb int, m, k, n int) {
	checkMatrix("A", a, m, k, lda)
	checkMatrix("B", b, m, n, ldb)
	checkMatrix("C", c, k, n, ldc)
	if m == 0 || k == 0 || n == 0 {
		return
	}
	path := current()
	chunk := chunks.Get().(*[chunkRows * pairCols]float32)
	defer chunks.Put(chunk)
	for i := 0; i < m; i += chunkRows {
		rows := min(chunkRows, m-i)
		for j := 0; j < n; j += pairCols {
			cols := min(pairCols, n-j)
			packPanels(chunk[:], rows*panelCols, b[i*ldb+j:], ldb, rows, cols)
			path.multiply(product{
				m: k, k: rows, n: cols,
				a: a[i*lda:], aRow: 1, aStep: lda,
				b: chunk[:], bPanel: rows * panelCols,
				c: c[j:], ldc: ldc, load: true,
			})
		}
	}
}

// product is C[m,n] = A[m,k]*B[k,n] with the parameters of tileFunc. B has an even
// number of panels.
type product struct {
	m, k, n     int
	a           []float32
	aRow, aStep int
	b           []float32
	bPanel      int
	c           []float32
	ldc         int
	load        bool
}

// maxTile is the number of elements of C in the largest tile of all paths.
const maxTile = 512

var edges = sync.Pool{New: func() any { return new([maxTile]float32) }}

// multiply computes C tile by tile. The outer loop runs over panels, so that a
// panel stays in the first-level cache for all rows.
func (p *path) multiply(x product) {
	if x.m == 0 || x.k == 0 || x.n == 0 {
		return
	}
	padded := packedCols(x.n)
	for j := 0; j < x.n; {
		t := &p.tall
		if x.m <= p.wide.rows && padded-j >= p.wide.panels*panelCols {
			t = &p.wide
		}
		cols := t.panels * panelCols
		b := x.b[j/panelCols*x.bPanel:]
		if j+cols <= x.n {
			t.column(&x, b, x.c[j:], x.ldc)
		} else {
			t.edge(&x, b, j)
		}
		j += cols
	}
}

// column computes one column of tiles in blocks of nearly equal height.
func (t *tile) column(x *product, b, c []float32, ldc int) {
	for i, blocks := 0, (x.m+t.rows-1)/t.rows; blocks > 0; blocks-- {
		rows := (x.m - i + blocks - 1) / blocks
		t.run(rows, x.k, x.a[i*x.aRow:], x.aRow, x.aStep, b, x.bPanel, c[i*ldc:], ldc, x.load)
		i += rows
	}
}

// edge computes the last columns, which do not fill a tile, in a scratch block. It
// uses the same micro-kernel, so the bits are those of a full tile.
func (t *tile) edge(x *product, b []float32, j int) {
	scratch := edges.Get().(*[maxTile]float32)
	defer edges.Put(scratch)
	width, cols := t.panels*panelCols, x.n-j
	part := *x
	for i := 0; i < x.m; i += t.rows {
		part.m = min(t.rows, x.m-i)
		part.a = x.a[i*x.aRow:]
		if x.load {
			for r := range part.m {
				copy(scratch[r*width:], x.c[(i+r)*x.ldc+j:][:cols])
			}
		}
		t.column(&part, b, scratch[:], width)
		for r := range part.m {
			copy(x.c[(i+r)*x.ldc+j:][:cols], scratch[r*width:])
		}
	}
}
