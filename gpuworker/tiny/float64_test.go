package tiny

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"testing"
)

// float64Model is an independent implementation of Qwen2 in float64. It shares no
// code with the engine.
type float64Model struct {
	config struct {
		Hidden  int     `json:"hidden_size"`
		Layers  int     `json:"num_hidden_layers"`
		Heads   int     `json:"num_attention_heads"`
		KVHeads int     `json:"num_key_value_heads"`
		Theta   float64 `json:"rope_theta"`
		Epsilon float64 `json:"rms_norm_eps"`
		Tied    bool    `json:"tie_word_embeddings"`
	}
	tensors map[string][]float64
}

func readFloat64(t testing.TB, fsys fs.FS) *float64Model {
	t.Helper()
	m := &float64Model{tensors: map[string][]float64{}}
	read := func(name string) []byte {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if err := json.Unmarshal(read("config.json"), &m.config); err != nil {
		t.Fatal(err)
	}
	files, err := fs.Glob(fsys, "model*.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file := read(name)
		length := binary.LittleEndian.Uint64(file)
		var header map[string]struct {
			DType   string
			Offsets [2]int `json:"data_offsets"`
		}
		if err := json.Unmarshal(file[8:8+length], &header); err != nil {
			t.Fatal(err)
		}
		for tensor, h := range header {
			if tensor != "__metadata__" {
				m.tensors[tensor] = floats(t, h.DType, file[8+int(length):][h.Offsets[0]:h.Offsets[1]])
			}
		}
	}
	return m
}

func floats(t testing.TB, dtype string, data []byte) (out []float64) {
	t.Helper()
	for len(data) > 0 {
		switch dtype {
		case "F32":
			out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(data))))
			data = data[4:]
		case "BF16":
			out = append(out, float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(data))<<16)))
			data = data[2:]
		case "F16":
			bits := binary.LittleEndian.Uint16(data)
			fraction, exponent := float64(bits&1023)/1024, int(bits>>10&31)
			v := math.Ldexp(1+fraction, exponent-15)
			if exponent == 0 {
				v = math.Ldexp(fraction, -14)
			}
			if bits>>15 == 1 {
				v = -v
			}
			out = append(out, v)
			data = data[2:]
		default:
			t.Fatalf("dtype %q", dtype)
		}
	}
	return out
}

// linear returns W*x for W[out,in], plus the bias if there is one.
func (m *float64Model) linear(name string, x []float64) []float64 {
	w, bias := m.tensors[name+".weight"], m.tensors[name+".bias"]
	y := make([]float64, len(w)/len(x))
	for i := range y {
		for j, v := range x {
			y[i] += w[i*len(x)+j] * v
		}
		if bias != nil {
			y[i] += bias[i]
		}
	}
	return y
}

func (m *float64Model) norm(name string, x []float64) []float64 {
	w, y, squares := m.tensors[name+".weight"], make([]float64, len(x)), 0.0
	for _, v := range x {
		squares += v * v
	}
	for i, v := range x {
		y[i] = v / math.Sqrt(squares/float64(len(x))+m.config.Epsilon) * w[i]
	}
	return y
}

// turn rotates each head of x: dimensions i and i+size/2 by position*theta^(-2i/size).
func (m *float64Model) turn(x []float64, size, position int) {
	for at := 0; at < len(x); at += size {
		for i := range size / 2 {
			sin, cos := math.Sincos(float64(position) * math.Pow(m.config.Theta, -2*float64(i)/float64(size)))
			a, b := x[at+i], x[at+i+size/2]
			x[at+i], x[at+i+size/2] = a*cos-b*sin, b*cos+a*sin
		}
	}
}

// logProbs returns log p of each token after the first.
func (m *float64Model) logProbs(ids []int32, temperature float64) []float64 {
	c := m.config
	embedding := m.tensors["model.embed_tokens.weight"]
	head := m.tensors["lm_head.weight"]
	if c.Tied {
		head = embedding
	}
	keys, values := make([][][]float64, c.Layers), make([][][]float64, c.Layers)
	var out []float64
	for position, id := range ids[:len(ids)-1] {
		x := append([]float64(nil), embedding[int(id)*c.Hidden:][:c.Hidden]...)
		for l := range c.Layers {
			name := fmt.Sprintf("model.layers.%d.", l)
			n := m.norm(name+"input_layernorm", x)
			q, k, v := m.linear(name+"self_attn.q_proj", n), m.linear(name+"self_attn.k_proj", n), m.linear(name+"self_attn.v_proj", n)
			size := len(q) / c.Heads
			m.turn(q, size, position)
			m.turn(k, size, position)
			keys[l], values[l] = append(keys[l], k), append(values[l], v)
			var mixed []float64
			for h := range c.Heads {
				from := h * c.KVHeads / c.Heads * size // the key and value head of this head
				mixed = append(mixed, attend(q[h*size:][:size], keys[l], values[l], from)...)
			}
			for i, y := range m.linear(name+"self_attn.o_proj", mixed) {
				x[i] += y
			}
			n = m.norm(name+"post_attention_layernorm", x)
			gate, up := m.linear(name+"mlp.gate_proj", n), m.linear(name+"mlp.up_proj", n)
			for i, g := range gate {
				up[i] *= g / (1 + math.Exp(-g))
			}
			for i, y := range m.linear(name+"mlp.down_proj", up) {
				x[i] += y
			}
		}
		n := m.norm("model.norm", x)
		total, next := 0.0, 0.0
		for token := range len(head) / c.Hidden {
			logit := 0.0
			for i, v := range n {
				logit += head[token*c.Hidden+i] * v
			}
			total += math.Exp(logit / temperature)
			if token == int(ids[position+1]) {
				next = logit / temperature
			}
		}
		out = append(out, next-math.Log(total))
	}
	return out
}

// attend returns the sum of the values from from on, weighted by the softmax of q's
// products with the keys.
func attend(q []float64, keys, values [][]float64, from int) []float64 {
	weights, total := make([]float64, len(keys)), 0.0
	for j, k := range keys {
		score := 0.0
		for i, v := range q {
			score += v * k[from+i]
		}
		weights[j] = math.Exp(score / math.Sqrt(float64(len(q))))
		total += weights[j]
	}
	out := make([]float64, len(q))
	for j, v := range values {
		for i := range out {
			out[i] += weights[j] / total * v[from+i]
		}
	}
	return out
}
