package qwen2

import (
	"fmt"
	"math"
)

// reference is a simple implementation of the model in float64 for one sequence.
// Its finite differences are exact to about nine digits, which float32 cannot
// reach.
type reference struct {
	c       Config
	tensors map[string][]float64
}

func newReference(w *Weights) *reference {
	r := &reference{c: w.Config, tensors: make(map[string][]float64)}
	for _, t := range w.Tensors {
		values := make([]float64, len(t.Data))
		for i, v := range t.Data {
			values[i] = float64(v)
		}
		r.tensors[t.Name] = values
	}
	return r
}

func (r *reference) linear(name string, x []float64) []float64 {
	w := r.tensors[name+".weight"]
	y := make([]float64, len(w)/len(x))
	if bias, ok := r.tensors[name+".bias"]; ok {
		copy(y, bias)
	}
	for o := range y {
		for i, v := range x {
			y[o] += w[o*len(x)+i] * v
		}
	}
	return y
}

func (r *reference) norm(name string, x []float64) []float64 {
	w, sum := r.tensors[name+".weight"], 0.0
	for _, v := range x {
		sum += v * v
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v / math.Sqrt(sum/float64(len(x))+r.c.NormEpsilon) * w[i]
	}
	return y
}

func (r *reference) rotate(x []float64, position int) {
	half := r.c.HeadSize / 2
	for head := 0; head < len(x); head += 2 * half {
		for i := range half {
			angle := float64(float32(position) * float32(math.Pow(r.c.RopeTheta, -float64(i)/float64(half))))
			a, b := x[head+i], x[head+half+i]
			x[head+i] = a*math.Cos(angle) - b*math.Sin(angle)
			x[head+half+i] = b*math.Cos(angle) + a*math.Sin(angle)
		}
	}
}

// logits returns the logits after each token of a sequence.
func (r *reference) logits(tokens []int32) [][]float64 {
	c := r.c
	xs := make([][]float64, len(tokens))
	for i, id := range tokens {
		xs[i] = append([]float64(nil), r.tensors["model.embed_tokens.weight"][int(id)*c.Hidden:][:c.Hidden]...)
	}
	for l := range c.Layers {
		name := fmt.Sprintf("model.layers.%d.", l)
		var keys, values [][]float64
		for i := range xs {
			n := r.norm(name+"input_layernorm", xs[i])
			q, k, v := r.linear(name+"self_attn.q_proj", n), r.linear(name+"self_attn.k_proj", n), r.linear(name+"self_attn.v_proj", n)
			r.rotate(q, i)
			r.rotate(k, i)
			keys, values = append(keys, k), append(values, v)
			var mixed []float64
			for head := range c.Heads {
				at := head / (c.Heads / c.KVHeads) * c.HeadSize
				scores := make([]float64, i+1)
				for j := range scores {
					for d := range c.HeadSize {
						scores[j] += q[head*c.HeadSize+d] * keys[j][at+d] / math.Sqrt(float64(c.HeadSize))
					}
				}
				out := make([]float64, c.HeadSize)
				for j, p := range softmax(scores) {
					for d := range out {
						out[d] += p * values[j][at+d]
					}
				}
				mixed = append(mixed, out...)
			}
			addTo(xs[i], r.linear(name+"self_attn.o_proj", mixed))
			n = r.norm(name+"post_attention_layernorm", xs[i])
			gate, up := r.linear(name+"mlp.gate_proj", n), r.linear(name+"mlp.up_proj", n)
			for j, g := range gate {
				gate[j] = g / (1 + math.Exp(-g)) * up[j]
			}
			addTo(xs[i], r.linear(name+"mlp.down_proj", gate))
		}
	}
	head := "lm_head"
	if c.TieEmbeddings {
		head = "model.embed_tokens"
	}
	out := make([][]float64, len(xs))
	for i, x := range xs {
		out[i] = r.linear(head, r.norm("model.norm", x))
	}
	return out
}

// logProbs returns log p of each response token at a temperature.
func (r *reference) logProbs(prompt, response []int32, temperature float64) []float64 {
	logits := r.logits(append(append([]int32(nil), prompt...), response...))
	out := make([]float64, len(response))
	for t, id := range response {
		row := logits[len(prompt)+t-1]
		for i := range row {
			row[i] /= temperature
		}
		out[t] = math.Log(softmax(row)[id])
	}
	return out
}

func softmax(x []float64) []float64 {
	largest, sum := math.Inf(-1), 0.0
	for _, v := range x {
		largest = math.Max(largest, v)
	}
	p := make([]float64, len(x))
	for i, v := range x {
		p[i] = math.Exp(v - largest)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

func addTo(x, y []float64) {
	for i, v := range y {
		x[i] += v
	}
}
