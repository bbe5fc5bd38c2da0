package kernel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"
	"math/rand/v2"
	"testing"
)

// TestBitsAreThoseOfOtherMachines compares the results of every path with those of
// other machines: AVX-512, AVX2 and NEON have one digest, scalar Go has another on
// all architectures. It calls the functions below the exported ones, because these
// use logarithms and powers of package math.
func TestBitsAreThoseOfOtherMachines(t *testing.T) {
	const (
		vector = "3f32a5afd715855af3affac2933f647d5b3b5695dcd6e6a549199bfb20dc7513"
		scalar = "45b86e49b46739b9a7409f9714f2ffb5bf552807aeb7eee8b01a348213df27c6"
	)
	eachPath(t, func(t *testing.T) {
		want := vector
		if Name() == "scalar" {
			want = scalar
		}
		d := digest{sha256.New()}
		for n := 1; n < 100; n++ {
			for _, spread := range []float32{1, 0x1p-70, 0x1p5, 0x1p66} {
				d.everything(exact{rand.New(rand.NewPCG(uint64(n), 0)), spread}, n)
			}
		}
		if got := hex.EncodeToString(d.Sum(nil)); got != want {
			t.Errorf("digest %s, want %s", got, want)
		}
	})
}

// exact draws numbers that no machine rounds: 24-bit integers times a power of two.
type exact struct {
	rng    *rand.Rand
	spread float32
}

func (e exact) numbers(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(int32(e.rng.Uint32())>>8) * 0x1p-23 * e.spread
	}
	return x
}

type digest struct{ hash.Hash }

// add adds every bit to the digest. All NaNs count as the same one.
func (d digest) add(outputs ...[]float32) {
	for _, x := range outputs {
		for _, v := range x {
			bits := math.Float32bits(v)
			if v != v {
				bits = math.Float32bits(float32(math.NaN()))
			}
			d.Write(binary.LittleEndian.AppendUint32(nil, bits))
		}
	}
}

// everything runs all functions of a path on n elements or n terms.
func (d digest) everything(e exact, n int) {
	p := current()
	a, b, c, y, z := e.numbers(n), e.numbers(n), e.numbers(n), e.numbers(n), e.numbers(n)
	d.add([]float32{p.dot(a, b), p.dot3(a, b, c), p.maximum(a)})
	p.axpy(0.75, a, y)
	p.scale(z, 0.3)
	d.add(y, z)
	p.softmaxBackward(y, a, b, 0.1)
	p.swiglu(z, a, b)
	d.add(y, z)
	p.swigluBackward(y, z, a, b, c)
	d.add(y, z)
	p.scaleMul(y, a, b, 0.7)
	p.rmsBackward(y, z, a, b, c, 0.3, 0.2)
	d.add(y, z)
	squares := clone(c)
	squareAll(squares)
	p.adamw(y, z, squares, a, 0.5, 0.9, 0.1, 0.99, 0.01, 1.5, 1e-8, 2e-3, 0.999)
	d.add(y, z, squares)
	scores := clone(a)
	d.add([]float32{p.expSum(scores, p.maximum(scores))}, scores)

	const rows = 7
	matrix, weights := e.numbers(rows*n), e.numbers(rows)
	p.dotRows(weights, a, matrix, n)
	p.axpyRows(y, weights, matrix, n)
	d.add(weights, y)

	const columns = 37
	var packed Packed
	Pack(&packed, e.numbers(n*columns), n, columns, false)
	product := e.numbers(rows * columns)
	MatMul(product, columns, matrix, n, rows, &packed, true)
	MatMulTA(matrix, n, product, columns, b, n, 1, rows, n)
	d.add(product, matrix)
}
