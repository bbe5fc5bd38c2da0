package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// reference computes A*B in float64; at is the element of A.
func reference(m, k, n int, at, bt func(i, j int) float32, c []float32, ldc int) []float64 {
	out := make([]float64, m*n)
	for i := range m {
		for j := range n {
			s := 0.0
			if c != nil {
				s = float64(c[i*ldc+j])
			}
			for p := range k {
				s += float64(at(i, p)) * float64(bt(p, j))
			}
			out[i*n+j] = s
		}
	}
	return out
}

// rowsOf copies the first n columns of m strided rows.
func rowsOf(c []float32, m, n, ldc int) []float32 {
	out := make([]float32, 0, m*n)
	for i := range m {
		out = append(out, c[i*ldc:][:n]...)
	}
	return out
}

func TestMatMulAgreesWithFloat64(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			size := rapid.IntRange(1, 70)
			m, k, n := size.Draw(t, "m"), size.Draw(t, "k"), size.Draw(t, "n")
			lda, ldc := k+rapid.IntRange(0, 5).Draw(t, "lda"), n+rapid.IntRange(0, 5).Draw(t, "ldc")
			transposed, accumulate := rapid.Bool().Draw(t, "transposed"), rapid.Bool().Draw(t, "accumulate")
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			a, b, c := normals(rng, m*lda), normals(rng, k*n), normals(rng, m*ldc)
			before := clone(c)

			bt := func(p, j int) float32 { return b[p*n+j] }
			if transposed {
				bt = func(p, j int) float32 { return b[j*k+p] }
			}
			start := before
			if !accumulate {
				start = nil
			}
			want := reference(m, k, n, func(i, p int) float32 { return a[i*lda+p] }, bt, start, ldc)

			var packed Packed
			Pack(&packed, normals(rng, 33*71), 33, 71, false) // leaves other values in the memory
			Pack(&packed, b, k, n, transposed)
			MatMul(c, ldc, a, lda, m, &packed, accumulate)
			near(t, "C", rowsOf(c, m, n, ldc), want, 1e-5)
			for i := range m {
				sameBits(t, "gap", c[i*ldc+n:][:ldc-n], before[i*ldc+n:][:ldc-n])
			}
		})
	})
}

func TestMatMulTAAgreesWithFloat64(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			size := rapid.IntRange(1, 70)
			m, k, n := rapid.IntRange(1, 300).Draw(t, "m"), size.Draw(t, "k"), size.Draw(t, "n")
			lda, ldb, ldc := k+rapid.IntRange(0, 5).Draw(t, "lda"), n+rapid.IntRange(0, 5).Draw(t, "ldb"), n+rapid.IntRange(0, 5).Draw(t, "ldc")
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			a, b, c := normals(rng, m*lda), normals(rng, m*ldb), normals(rng, k*ldc)
			want := reference(k, m, n, func(i, p int) float32 { return a[p*lda+i] }, func(p, j int) float32 { return b[p*ldb+j] }, c, ldc)

			whole, halves := clone(c), clone(c)
			MatMulTA(whole, ldc, a, lda, b, ldb, m, k, n)
			near(t, "C", rowsOf(whole, k, n, ldc), want, 3e-5)

			cut := rapid.IntRange(0, m).Draw(t, "cut")
			MatMulTA(halves, ldc, a, lda, b, ldb, cut, k, n)
			MatMulTA(halves, ldc, a[cut*lda:], lda, b[cut*ldb:], ldb, m-cut, k, n)
			sameBits(t, "C in two calls", halves, whole)

			byRows := clone(c)
			cut = rapid.IntRange(0, k).Draw(t, "rows")
			MatMulTA(byRows, ldc, a, lda, b, ldb, m, cut, n)
			MatMulTA(byRows[cut*ldc:], ldc, a[cut:], lda, b, ldb, m, k-cut, n)
			sameBits(t, "C in two shards", byRows, whole)
		})
	})
}

// TestSingleRowsEqualRowsInBatch checks the property that makes a completion
// independent of its batch.
func TestSingleRowsEqualRowsInBatch(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			m := rapid.IntRange(1, 40).Draw(t, "m")
			k, n := rapid.IntRange(1, 140).Draw(t, "k"), rapid.IntRange(1, 140).Draw(t, "n")
			accumulate := rapid.Bool().Draw(t, "accumulate")
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			a, c := normals(rng, m*k), normals(rng, m*n)
			var packed Packed
			Pack(&packed, normals(rng, k*n), k, n, false)

			single := clone(c)
			for i := range m {
				// A new copy has another alignment.
				row := append(make([]float32, i%5, i%5+k), a[i*k:][:k]...)[i%5:]
				MatMul(single[i*n:][:n], n, row, k, 1, &packed, accumulate)
			}
			cut := rapid.IntRange(0, m).Draw(t, "cut")
			split := clone(c)
			MatMul(split, n, a, k, cut, &packed, accumulate)
			MatMul(split[cut*n:], n, a[cut*k:], k, m-cut, &packed, accumulate)
			MatMul(c, n, a, k, m, &packed, accumulate)
			sameBits(t, "single rows", single, c)
			sameBits(t, "rows split", split, c)
		})
	})
}

// TestColumnsDoNotDependOnN packs single columns and compares them with the same
// columns of a whole matrix, which uses other tile shapes.
func TestColumnsDoNotDependOnN(t *testing.T) {
	const m, k, n = 9, 37, 83
	rng := rand.New(rand.NewPCG(1, 2))
	a, b := normals(rng, m*k), normals(rng, n*k)
	eachPath(t, func(t *testing.T) {
		var packed Packed
		whole, one := make([]float32, m*n), make([]float32, m)
		Pack(&packed, b, k, n, true)
		MatMul(whole, n, a, k, m, &packed, false)
		for j := range n {
			Pack(&packed, b[j*k:], k, 1, true)
			MatMul(one, 1, a, k, m, &packed, false)
			for i := range m {
				if math.Float32bits(one[i]) != math.Float32bits(whole[i*n+j]) {
					t.Fatalf("C[%d,%d] = %v as a column, %v in the whole matrix", i, j, one[i], whole[i*n+j])
				}
			}
		}
	})
}

func TestPackViewTakesOneHead(t *testing.T) {
	const tokens, heads, dim = 21, 3, 8
	rng := rand.New(rand.NewPCG(3, 4))
	keys := normals(rng, tokens*heads*dim)
	head := rowsOf(keys[dim:], tokens, dim, heads*dim)
	for _, transposed := range []bool{false, true} {
		k, n := tokens, dim
		if transposed {
			k, n = dim, tokens
		}
		var view, whole Packed
		PackView(&view, keys[dim:], heads*dim, k, n, transposed)
		Pack(&whole, head, k, n, transposed)
		sameBits(t, fmt.Sprintf("panels (transposed %v)", transposed), view.data, whole.data)
	}
}

func TestMatMulWithoutTerms(t *testing.T) {
	var packed Packed
	Pack(&packed, nil, 0, 3, false)
	c := []float32{1, 2, 3}
	MatMul(c, 3, nil, 0, 1, &packed, true)
	sameBits(t, "accumulated", c, []float32{1, 2, 3})
	MatMul(c, 3, nil, 0, 1, &packed, false)
	sameBits(t, "computed", c, []float32{0, 0, 0})
}

func TestMatMulPanicsForShortSlices(t *testing.T) {
	var packed Packed
	Pack(&packed, make([]float32, 6), 2, 3, false)
	for name, call := range map[string]func(){
		"A":      func() { MatMul(make([]float32, 6), 3, make([]float32, 3), 2, 2, &packed, false) },
		"C":      func() { MatMul(make([]float32, 5), 3, make([]float32, 4), 2, 2, &packed, false) },
		"stride": func() { MatMul(make([]float32, 9), 2, make([]float32, 4), 2, 2, &packed, false) },
		"B":      func() { Pack(&packed, make([]float32, 5), 2, 3, true) },
		"TA":     func() { MatMulTA(make([]float32, 6), 3, make([]float32, 4), 2, make([]float32, 5), 3, 2, 2, 3) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		})
	}
}

func TestMatMulKeepsNaNAndInf(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	eachPath(t, func(t *testing.T) {
		const m, k, n = 5, 3, 33
		a, b := make([]float32, m*k), make([]float32, k*n)
		for i := range a {
			a[i] = 1
		}
		for i := range b {
			b[i] = 1
		}
		a[1*k], a[2*k+1], b[7] = nan, inf, inf
		var packed Packed
		Pack(&packed, b, k, n, false)
		c := make([]float32, m*n)
		MatMul(c, n, a, k, m, &packed, false)
		for i := range m {
			for j := range n {
				want := float32(3)
				switch {
				case i == 1:
					want = nan
				case i == 2 || j == 7:
					want = inf
				}
				sameBits(t, fmt.Sprintf("C[%d,%d]", i, j), c[i*n+j:][:1], []float32{want})
			}
		}
	})
}

func TestMatMulDoesNotAllocate(t *testing.T) {
	const m, k, n = 11, 40, 70
	a, c, grad := make([]float32, m*k), make([]float32, m*n), make([]float32, k*n)
	var packed Packed
	eachPath(t, func(t *testing.T) {
		allocs := testing.AllocsPerRun(100, func() {
			Pack(&packed, grad, k, n, false)
			MatMul(c, n, a, k, m, &packed, false)
			MatMulTA(grad, n, a, k, c, n, m, k, n)
		})
		if allocs >= 1 {
			t.Errorf("%v allocations a run", allocs)
		}
	})
}
