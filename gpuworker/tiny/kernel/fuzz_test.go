package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// FuzzPaths compares every vector path with the scalar one, on all functions.
func FuzzPaths(f *testing.F) {
	f.Add(uint64(1), uint8(5), uint8(7), uint8(33), false)
	f.Add(uint64(2), uint8(13), uint8(64), uint8(16), true)
	f.Add(uint64(3), uint8(1), uint8(1), uint8(1), false)
	before := Name()
	f.Cleanup(func() { use(f, before) })
	f.Fuzz(func(t *testing.T, seed uint64, rows, inner, columns uint8, small bool) {
		m, k, n := 1+int(rows)%40, 1+int(inner), 1+int(columns)
		inputs := func(count, n int) [][]float32 {
			rng := rand.New(rand.NewPCG(seed, 0))
			in := make([][]float32, count)
			for i := range in {
				in[i] = normals(rng, n)
				for j := range in[i] {
					if small {
						in[i][j] *= 0x1p-20
					}
				}
			}
			return in
		}
		compute := func() map[string][][]float32 {
			out := map[string][][]float32{}
			for _, c := range vectorCases {
				out[c.name] = c.run(inputs(c.inputs, n))
			}
			in := inputs(3, max(m*k, k*n, m*n))
			var packed Packed
			Pack(&packed, in[1], k, n, seed%2 == 0)
			MatMul(in[2], n, in[0], k, m, &packed, true)
			out["MatMul"] = in[2:]
			in = inputs(3, max(m*k, k*n, m*n))
			MatMulTA(in[1], n, in[0], k, in[2], n, m, k, n)
			out["MatMulTA"] = in[1:2]
			in = inputs(4, max(m*k, k))
			DotRows(in[1][:m], in[2][:k], in[0], k)
			AxpyRows(in[3][:k], in[1][:m], in[0], k)
			out["DotRows"], out["AxpyRows"] = in[1:2], in[3:]
			return out
		}
		use(t, "scalar")
		want := compute()
		for _, path := range Names() {
			use(t, path)
			for name, got := range compute() {
				for i := range got {
					scalar := make([]float64, len(want[name][i]))
					for j, v := range want[name][i] {
						scalar[j] = float64(v)
					}
					near(t, fmt.Sprintf("%s %s %d", path, name, i), got[i], scalar, 3e-4)
				}
			}
		}
	})
}
