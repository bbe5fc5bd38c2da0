package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// benchPaths runs f as a sub-benchmark on every path of this machine.
func benchPaths(b *testing.B, f func(b *testing.B)) {
	before := Name()
	b.Cleanup(func() { use(b, before) })
	for _, name := range Names() {
		use(b, name)
		b.Run(name, f)
	}
}

// reportRate reports the rate of perRun operations per run in billions per second.
func reportRate(b *testing.B, perRun int, unit string) {
	b.ReportMetric(float64(perRun)*float64(b.N)/b.Elapsed().Seconds()/1e9, unit)
}

var shapes = []struct{ k, n int }{{128, 384}, {384, 128}, {128, 1024}}

func BenchmarkMatMul(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	benchPaths(b, func(b *testing.B) {
		for _, s := range shapes {
			var packed Packed
			Pack(&packed, normals(rng, s.k*s.n), s.k, s.n, false)
			for _, m := range []int{1, 8, 64, 256} {
				a, c := normals(rng, m*s.k), make([]float32, m*s.n)
				b.Run(fmt.Sprintf("m=%d,k=%d,n=%d", m, s.k, s.n), func(b *testing.B) {
					for b.Loop() {
						MatMul(c, s.n, a, s.k, m, &packed, false)
					}
					reportRate(b, 2*m*s.k*s.n, "GFLOP/s")
				})
			}
		}
	})
}

func BenchmarkMatMulTA(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	benchPaths(b, func(b *testing.B) {
		for _, s := range shapes {
			const m = 256
			x, dy, grad := normals(rng, m*s.k), normals(rng, m*s.n), make([]float32, s.k*s.n)
			b.Run(fmt.Sprintf("m=%d,k=%d,n=%d", m, s.k, s.n), func(b *testing.B) {
				for b.Loop() {
					MatMulTA(grad, s.n, x, s.k, dy, s.n, m, s.k, s.n)
				}
				reportRate(b, 2*m*s.k*s.n, "GFLOP/s")
			})
		}
	})
}

func BenchmarkPack(b *testing.B) {
	const k, n = 384, 128
	w := make([]float32, k*n)
	var packed Packed
	for _, transposed := range []bool{false, true} {
		b.Run(fmt.Sprintf("transposed=%v", transposed), func(b *testing.B) {
			for b.Loop() {
				Pack(&packed, w, k, n, transposed)
			}
			reportRate(b, k*n, "Gelem/s")
		})
	}
}

func BenchmarkVector(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	const n, tokens, dim = 768, 256, 32
	var x [5][]float32
	for i := range x {
		x[i] = normals(rng, n)
	}
	for i, v := range x[2] {
		x[2][i] = v * v // AdamW's second moments
	}
	cache := normals(rng, tokens*dim)
	benchPaths(b, func(b *testing.B) {
		for _, c := range []struct {
			name     string
			elements int
			run      func()
		}{
			{"Dot", n, func() { Dot(x[0], x[1]) }},
			{"Axpy", n, func() { Axpy(1e-9, x[0], x[1]) }},
			{"DotRows", tokens * dim, func() { DotRows(x[4][:tokens], x[0][:dim], cache, dim) }},
			{"AxpyRows", tokens * dim, func() { AxpyRows(x[4][:dim], x[0][:tokens], cache, dim) }},
			{"Softmax", n, func() { SoftmaxInPlace(x[4]) }},
			{"SwiGLU", n, func() { SwiGLU(x[4], x[0], x[1]) }},
			{"SwiGLUBackward", n, func() { SwiGLUBackward(x[3], x[4], x[0], x[1], x[2]) }},
			{"RMSNorm", n, func() { RMSNorm(x[4], x[0], x[1], 1e-6) }},
			{"AdamW", n, func() { AdamW(x[4], x[3], x[2], x[0], testStep) }},
		} {
			b.Run(c.name, func(b *testing.B) {
				for b.Loop() {
					c.run()
				}
				reportRate(b, c.elements, "Gelem/s")
			})
		}
	})
}
