package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// benchPaths runs f as a sub-benchmark on every path this machine has.
func benchPaths(b *testing.B, f func(b *testing.B)) {
	before := Name()
	b.Cleanup(func() { use(b, before) })
	for _, name := range Names() {
		use(b, name)
		b.Run(name, f)
	}
}

// reportRate reports perRun operations a run in billions a second.
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
