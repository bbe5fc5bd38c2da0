package qwen2

import "math"

// rotary is the table of rotary position embeddings (Su et al., "RoFormer"):
// dimensions i and i+half of a head rotate by position*theta^(-i/half).
type rotary struct {
	half     int
	cos, sin []float32 // [Positions, half]
}

// newRotary rounds frequencies and angles to float32 as Hugging Face does.
func newRotary(c Config) rotary {
	r := rotary{half: c.HeadSize / 2}
	r.cos = make([]float32, c.Positions*r.half)
	r.sin = make([]float32, c.Positions*r.half)
	for i := range r.half {
		frequency := float32(1 / math.Pow(c.RopeTheta, float64(i)/float64(r.half)))
		for p := range c.Positions {
			sin, cos := math.Sincos(float64(float32(p) * frequency))
			r.cos[p*r.half+i], r.sin[p*r.half+i] = float32(cos), float32(sin)
		}
	}
	return r
}

// rotate rotates each head of x by the angles of a position and multiplies it by
// scale. The length of x is a multiple of the head size.
func (r *rotary) rotate(x []float32, position int, scale float32) {
	cos := r.cos[position*r.half:][:r.half]
	sin := r.sin[position*r.half:][:r.half]
	for head := 0; head < len(x); head += 2 * r.half {
		a, b := x[head:][:r.half], x[head+r.half:][:r.half]
		for i, c := range cos {
			s, u, v := sin[i], a[i], b[i]
			a[i] = scale * (float32(u*c) - float32(v*s))
			b[i] = scale * (float32(v*c) + float32(u*s))
		}
	}
}

// unrotate is the transpose of rotate, for gradients.
func (r *rotary) unrotate(x []float32, position int, scale float32) {
	cos := r.cos[position*r.half:][:r.half]
	sin := r.sin[position*r.half:][:r.half]
	for head := 0; head < len(x); head += 2 * r.half {
		a, b := x[head:][:r.half], x[head+r.half:][:r.half]
		for i, c := range cos {
			s, u, v := sin[i], a[i], b[i]
			a[i] = scale * (float32(u*c) + float32(v*s))
			b[i] = scale * (float32(v*c) - float32(u*s))
		}
	}
}
