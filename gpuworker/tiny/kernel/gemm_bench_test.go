package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkGEMM compares the products of each assembly path with those of the
// scalar path on one core. The two run alternately and the fastest run of each
// counts, so the ratio is stable on a machine that runs other programs too.
//
//	GFLOP/s   of the path's fastest run
//	x-scalar  times faster than scalar Go
func BenchmarkGEMM(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	before := Name()
	b.Cleanup(func() { use(b, before) })
	for _, name := range Names() {
		if name == scalarPath.name {
			continue
		}
		for _, s := range []struct{ m, k, n int }{{256, 128, 384}, {256, 384, 128}, {256, 128, 1024}, {512, 512, 512}} {
			a, c := normals(rng, s.m*s.k), make([]float32, s.m*s.n)
			var packed Packed
			Pack(&packed, normals(rng, s.k*s.n), s.k, s.n, false)
			product := func(path string) func() {
				return func() {
					use(b, path)
					MatMul(c, s.n, a, s.k, s.m, &packed, false)
				}
			}
			flops := 2 * s.m * s.k * s.n
			b.Run(fmt.Sprintf("%s/m=%d,k=%d,n=%d", name, s.m, s.k, s.n), func(b *testing.B) {
				var path, scalar rate
				for b.Loop() {
					path.measure(product(name), flops)
					scalar.measure(product("scalar"), flops)
				}
				b.ReportMetric(float64(path), "GFLOP/s")
				b.ReportMetric(float64(path/scalar), "x-scalar")
				b.ReportMetric(0, "ns/op") // the sum of both paths; not meaningful
			})
		}
	}
}

// rate is the highest number of GFLOP/s so far.
type rate float64

func (r *rate) measure(run func(), flops int) {
	began := time.Now()
	run()
	*r = max(*r, rate(float64(flops)/time.Since(began).Seconds()/1e9))
}
