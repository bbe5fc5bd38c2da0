package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// vectorCase runs one vector function on inputs of n elements each and returns all
// its outputs and results. The function may change the inputs.
type vectorCase struct {
	name   string
	inputs int
	run    func(in [][]float32) [][]float32
	// want computes the same in float64 from copies of the inputs.
	want      func(in [][]float64) [][]float64
	tolerance float64
}

var testStep = AdamWStep{LearningRate: 0.01, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.1, GradScale: 0.5, Step: 3}

func sum(f func(i int) float64, n int) (s float64) {
	for i := range n {
		s += f(i)
	}
	return s
}

func sigmoid64(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

var vectorCases = []vectorCase{
	{
		name: "Dot", inputs: 2, tolerance: 1e-5,
		run: func(in [][]float32) [][]float32 { return [][]float32{{Dot(in[0], in[1])}} },
		want: func(in [][]float64) [][]float64 {
			return [][]float64{{sum(func(i int) float64 { return in[0][i] * in[1][i] }, len(in[0]))}}
		},
	},
	{
		name: "Axpy", inputs: 2, tolerance: 1e-6,
		run: func(in [][]float32) [][]float32 {
			Axpy(1.5, in[0], in[1])
			return in[1:]
		},
		want: func(in [][]float64) [][]float64 {
			for i, v := range in[0] {
				in[1][i] += 1.5 * v
			}
			return in[1:]
		},
	},
	{
		name: "SoftmaxInPlace", inputs: 1, tolerance: 2e-6,
		run: func(in [][]float32) [][]float32 {
			largest, logSumExp := SoftmaxInPlace(in[0])
			return [][]float32{in[0], {largest, logSumExp}}
		},
		want: func(in [][]float64) [][]float64 {
			x := in[0]
			largest := math.Inf(-1)
			for _, v := range x {
				largest = max(largest, v)
			}
			total := sum(func(i int) float64 { return math.Exp(x[i] - largest) }, len(x))
			for i, v := range x {
				x[i] = math.Exp(v-largest) / total
			}
			return [][]float64{x, {largest, largest + math.Log(total)}}
		},
	},
	{
		name: "SoftmaxBackward", inputs: 3, tolerance: 5e-5, // the sum of up to 200 products is taken from each of them
		run: func(in [][]float32) [][]float32 {
			SoftmaxBackward(in[0], in[1], in[2])
			return in[:1]
		},
		want: func(in [][]float64) [][]float64 {
			p, dp := in[1], in[2]
			mean := sum(func(i int) float64 { return p[i] * dp[i] }, len(p))
			for i := range p {
				in[0][i] = p[i] * (dp[i] - mean)
			}
			return in[:1]
		},
	},
	{
		name: "SwiGLU", inputs: 2, tolerance: 1e-6,
		run: func(in [][]float32) [][]float32 {
			SwiGLU(in[0], in[0], in[1])
			return in[:1]
		},
		want: func(in [][]float64) [][]float64 {
			for i, g := range in[0] {
				in[0][i] = g * sigmoid64(g) * in[1][i]
			}
			return in[:1]
		},
	},
	{
		name: "SwiGLUBackward", inputs: 5, tolerance: 2e-6,
		run: func(in [][]float32) [][]float32 {
			SwiGLUBackward(in[0], in[1], in[2], in[3], in[4])
			return in[:2]
		},
		want: func(in [][]float64) [][]float64 {
			for i, g := range in[2] {
				s := sigmoid64(g)
				in[1][i] = in[4][i] * g * s
				in[0][i] = in[4][i] * in[3][i] * s * (1 + g*(1-s))
			}
			return in[:2]
		},
	},
	{
		name: "RMSNorm", inputs: 3, tolerance: 2e-6,
		run: func(in [][]float32) [][]float32 {
			inv := RMSNorm(in[0], in[1], in[2], 1e-6)
			return [][]float32{in[0], {inv}}
		},
		want: func(in [][]float64) [][]float64 {
			x, w := in[1], in[2]
			inv := inverseRMS(x)
			for i, v := range x {
				in[0][i] = v * inv * w[i]
			}
			return [][]float64{in[0], {inv}}
		},
	},
	{
		name: "RMSNormBackward", inputs: 5, tolerance: 2e-5,
		run: func(in [][]float32) [][]float32 {
			leaveZero(in[2])
			inv := RMSNorm(make([]float32, len(in[2])), in[2], in[3], 1e-6)
			RMSNormBackward(in[0], in[1], in[2], in[3], in[4], inv)
			return in[:2]
		},
		want: func(in [][]float64) [][]float64 {
			x, w, dy := in[2], in[3], in[4]
			leaveZero(x)
			n := len(x)
			inv := inverseRMS(x)
			total := sum(func(i int) float64 { return dy[i] * w[i] * x[i] }, n)
			for i, v := range x {
				in[0][i] += dy[i]*w[i]*inv - v*inv*inv*inv/float64(n)*total
				in[1][i] += dy[i] * v * inv
			}
			return in[:2]
		},
	},
	{
		name: "AdamW", inputs: 4, tolerance: 2e-6,
		run: func(in [][]float32) [][]float32 {
			squareAll(in[2])
			AdamW(in[0], in[1], in[2], in[3], testStep)
			return in[:3]
		},
		want: func(in [][]float64) [][]float64 {
			w, m, v, s := in[0], in[1], in[2], testStep
			for i := range w {
				g := in[3][i] * s.GradScale
				w[i] -= s.LearningRate * s.WeightDecay * w[i]
				m[i] = s.Beta1*m[i] + (1-s.Beta1)*g
				v[i] = s.Beta2*v[i]*v[i] + (1-s.Beta2)*g*g
				mHat := m[i] / (1 - math.Pow(s.Beta1, float64(s.Step)))
				vHat := v[i] / (1 - math.Pow(s.Beta2, float64(s.Step)))
				w[i] -= s.LearningRate * mHat / (math.Sqrt(vHat) + s.Epsilon)
			}
			return in[:3]
		},
	},
}

func inverseRMS(x []float64) float64 {
	return 1 / math.Sqrt(sum(func(i int) float64 { return x[i] * x[i] }, len(x))/float64(len(x))+1e-6)
}

func squareAll(x []float32) {
	for i, v := range x {
		x[i] = v * v
	}
}

// placed copies the inputs to the given offset in new memory, with another alignment
// and other neighbours. A guard follows each copy.
func placed(in [][]float32, offset int) (copies, guards [][]float32) {
	const guard = 20
	for _, x := range in {
		all := make([]float32, offset+len(x)+guard)
		for i := range all {
			all[i] = 77
		}
		copy(all[offset:], x)
		copies = append(copies, all[offset:offset+len(x)])
		guards = append(guards, all[:offset], all[offset+len(x):])
	}
	return copies, guards
}

// leaveZero moves values away from 0. The gradient of a short row of small values is
// the difference of two large numbers.
func leaveZero[T float32 | float64](x []T) {
	for i, v := range x {
		if v < 0 {
			x[i] = v - 0.5
		} else {
			x[i] = v + 0.5
		}
	}
}

func TestVectorFunctions(t *testing.T) {
	for _, c := range vectorCases {
		t.Run(c.name, func(t *testing.T) {
			eachPath(t, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
					n := rapid.IntRange(1, 200).Draw(t, "n")
					in := make([][]float32, c.inputs)
					wide := make([][]float64, c.inputs)
					for i := range in {
						in[i] = normals(rng, n)
						for _, v := range in[i] {
							wide[i] = append(wide[i], float64(v))
						}
					}
					first, guards := placed(in, 0)
					second, moreGuards := placed(in, rapid.IntRange(1, 17).Draw(t, "offset"))
					got, moved := c.run(first), c.run(second)
					for i, want := range c.want(wide) {
						near(t, fmt.Sprintf("result %d", i), got[i], want, c.tolerance)
						sameBits(t, fmt.Sprintf("result %d elsewhere", i), moved[i], got[i])
					}
					for _, guard := range append(guards, moreGuards...) {
						for _, v := range guard {
							if v != 77 {
								t.Fatalf("wrote %v outside of its slices", v)
							}
						}
					}
				})
			})
		})
	}
}

// TestAssemblyPathsAgree checks that a machine with AVX2 and one with AVX-512 train
// the same weights.
func TestAssemblyPathsAgree(t *testing.T) {
	names := Names()
	if len(names) < 3 {
		t.Skipf("needs avx512 and avx2, this machine has %v", names)
	}
	before := Name()
	t.Cleanup(func() { use(t, before) })
	both := func(t *rapid.T, what string, run func() [][]float32) {
		var results [2][][]float32
		for i, name := range []string{"avx2", "avx512"} {
			if err := Use(name); err != nil {
				t.Fatal(err)
			}
			results[i] = run()
		}
		for i := range results[0] {
			sameBits(t, fmt.Sprintf("%s result %d", what, i), results[0][i], results[1][i])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		seed, n := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 200).Draw(t, "n")
		m, k := rapid.IntRange(1, 30).Draw(t, "m"), rapid.IntRange(1, 150).Draw(t, "k")
		spread := rapid.SampledFrom([]float32{1, 1e-3, 30, 1e20}).Draw(t, "spread")
		inputs := func(count, n int) [][]float32 {
			rng := rand.New(rand.NewPCG(seed, 0))
			in := make([][]float32, count)
			for i := range in {
				in[i] = normals(rng, n)
				for j := range in[i] {
					in[i][j] *= spread
				}
			}
			return in
		}
		for _, c := range vectorCases {
			both(t, c.name, func() [][]float32 { return c.run(inputs(c.inputs, n)) })
		}
		both(t, "MatMul", func() [][]float32 {
			in := inputs(3, max(m*k, k*n, m*n))
			var packed Packed
			Pack(&packed, in[1], k, n, false)
			MatMul(in[2], n, in[0], k, m, &packed, true)
			return in[2:]
		})
		both(t, "MatMulTA", func() [][]float32 {
			in := inputs(3, max(m*k, k*n, m*n))
			MatMulTA(in[1], n, in[0], k, in[2], n, m, k, n)
			return in[1:2]
		})
		both(t, "rows", func() [][]float32 {
			in := inputs(4, max(m*k, n))
			DotRows(in[1][:m], in[2][:k], in[0], k)
			AxpyRows(in[3][:k], in[1][:m], in[0], k)
			return in
		})
	})
}

func TestRowsEqualSingleCalls(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			rows, n := rapid.IntRange(0, 12).Draw(t, "rows"), rapid.IntRange(0, 150).Draw(t, "n")
			stride := n + rapid.IntRange(0, 9).Draw(t, "gap")
			matrix, x := normals(rng, rows*stride), normals(rng, n)

			scores, single := make([]float32, rows), make([]float32, rows)
			DotRows(scores, x, matrix, stride)
			for i := range single {
				single[i] = Dot(x, matrix[i*stride:])
			}
			sameBits(t, "DotRows", scores, single)

			summed := clone(x)
			AxpyRows(summed, scores, matrix, stride)
			for i, w := range scores {
				Axpy(w, matrix[i*stride:][:n], x)
			}
			sameBits(t, "AxpyRows", summed, x)
		})
	})
}

func TestSoftmaxExtremes(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	eachPath(t, func(t *testing.T) {
		for _, c := range []struct {
			name          string
			x, want       []float32
			largest, sums float32
		}{
			{"masked", []float32{-inf, 3, -inf, 3}, []float32{0, .5, 0, .5}, 3, 3 + math.Ln2},
			{"far", []float32{0, -1000, 1000}, []float32{0, 0, 1}, 1000, 1000},
			{"one", []float32{-5}, []float32{1}, -5, -5},
			{"empty", nil, nil, -inf, -inf},
			{"nan", []float32{1, nan, 2}, []float32{nan, nan, nan}, 2, nan},
			{"infinite", []float32{1, inf}, []float32{nan, nan}, inf, nan},
			{"all masked", []float32{-inf, -inf}, []float32{nan, nan}, -inf, nan},
		} {
			largest, logSumExp := SoftmaxInPlace(c.x)
			sameBits(t, c.name, append(c.x, largest, logSumExp), append(c.want, c.largest, c.sums))
		}
	})
}

// TestExpAccuracy measures exp on its whole range with a softmax of two entries. The
// first entry is exp(x)/(1+exp(x)).
func TestExpAccuracy(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		worst := 0.0
		for x := float32(0); x > -86.9; x -= 0.00917 {
			pair := []float32{x, 0}
			SoftmaxInPlace(pair)
			e := math.Exp(float64(x))
			want := e / (1 + e)
			worst = max(worst, math.Abs(float64(pair[0])-want)/want)
		}
		if limit := 3e-7; worst > limit {
			t.Errorf("relative error %.2g, want at most %.2g", worst, limit)
		}
	})
}

func TestSigmoidExtremes(t *testing.T) {
	nan := float32(math.NaN())
	eachPath(t, func(t *testing.T) {
		gate := []float32{0, 100, -100, 1e30, -1e30, nan, float32(math.Inf(1))}
		up := []float32{5, 1, 1, 1, 1, 1, 1}
		got := make([]float32, len(gate))
		SwiGLU(got, gate, up)
		want := []float32{0, 100, float32(math.Copysign(0, -1)), 1e30, float32(math.Copysign(0, -1)), nan, float32(math.Inf(1))}
		sameBits(t, "silu", got, want)
	})
}

func TestVectorFunctionsKeepNaN(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		for _, c := range vectorCases {
			const n, bad = 37, 35 // inside the remainder
			rng := rand.New(rand.NewPCG(1, 0))
			in := make([][]float32, c.inputs)
			for i := range in {
				in[i] = normals(rng, n)
				in[i][bad] = float32(math.NaN())
			}
			found := false
			for _, out := range c.run(in) {
				for _, v := range out {
					found = found || v != v
				}
			}
			if !found {
				t.Errorf("%s: NaN in, none out", c.name)
			}
		}
	})
}

func TestVectorFunctionsDoNotAllocate(t *testing.T) {
	const n = 45
	rng := rand.New(rand.NewPCG(1, 0))
	x := make([][]float32, 5)
	for i := range x {
		x[i] = normals(rng, n)
	}
	eachPath(t, func(t *testing.T) {
		if allocs := testing.AllocsPerRun(100, func() {
			Axpy(Dot(x[0], x[1]), x[0], x[1])
			DotRows(x[0][:5], x[1][:9], x[2], 9)
			AxpyRows(x[1][:9], x[0][:5], x[2], 9)
			SoftmaxInPlace(x[0])
			SoftmaxBackward(x[1], x[0], x[2])
			SwiGLU(x[0], x[1], x[2])
			SwiGLUBackward(x[0], x[1], x[2], x[3], x[4])
			RMSNormBackward(x[0], x[1], x[2], x[3], x[4], RMSNorm(x[0], x[2], x[3], 1e-6))
			AdamW(x[0], x[1], x[2], x[3], testStep)
		}); allocs != 0 {
			t.Errorf("%v allocations a run", allocs)
		}
	})
}
