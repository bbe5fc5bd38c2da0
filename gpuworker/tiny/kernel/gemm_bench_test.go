package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"codea1/gpuworker/tiny/kernel/internal/peak"
)

// BenchmarkGEMM compares a path's products, on one core, with those of the
// scalar path and with multiply-adds on registers alone. The three take turns,
// and of each the fastest turn counts, so that a machine shared with others
// gives much the same ratios as an idle one.
//
//	GFLOP/s    of the path, at its best
//	x-scalar   times faster than scalar Go
//	%-of-peak  of what one core can do
func BenchmarkGEMM(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	before := Name()
	b.Cleanup(func() { use(b, before) })
	for _, name := range Names() {
		ceiling, ok := peak.Of(name)
		if !ok {
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
			rounds := flops / ceiling.FLOPs
			b.Run(fmt.Sprintf("%s/m=%d,k=%d,n=%d", name, s.m, s.k, s.n), func(b *testing.B) {
				var path, scalar, top rate
				for b.Loop() {
					path.measure(product(name), flops)
					top.measure(func() { ceiling.Run(rounds) }, rounds*ceiling.FLOPs)
					scalar.measure(product("scalar"), flops)
				}
				b.ReportMetric(float64(path), "GFLOP/s")
				b.ReportMetric(float64(path/scalar), "x-scalar")
				b.ReportMetric(float64(100*path/top), "%-of-peak")
				b.ReportMetric(0, "ns/op") // of all three together: of no use
			})
		}
	}
}

// rate is the most billions of operations a second so far.
type rate float64

func (r *rate) measure(run func(), flops int) {
	began := time.Now()
	run()
	*r = max(*r, rate(float64(flops)/time.Since(began).Seconds()/1e9))
}
