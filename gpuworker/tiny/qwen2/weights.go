package qwen2

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Tensor is a named part of Weights in the layout of Hugging Face: linear layers
// are [out, in].
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// Matrix reports whether the tensor is a matrix. Weight decay applies to
// matrices, not to norms and biases.
func (t Tensor) Matrix() bool { return len(t.Shape) == 2 }

// Weights holds all parameters, or values of the same layout such as a gradient
// or a moment of the optimizer. The tensors are views of Data, in the order of
// Data. Projections with the same input are neighbours, so one product computes
// them.
type Weights struct {
	Config  Config
	Data    []float32
	Tensors []Tensor

	embed  []float32 // [Vocabulary, H]
	layers []layerWeights
	norm   []float32 // [H]
	head   []float32 // [Vocabulary, H]; embed when tied
}

type layerWeights struct {
	attentionNorm []float32 // [H]
	qkv           []float32 // [Q+2KV, H]
	qkvBias       []float32 // [Q+2KV]
	out           []float32 // [H, Q]
	mlpNorm       []float32 // [H]
	gateUp        []float32 // [2*MLP, H]
	down          []float32 // [H, MLP]
}

// NewWeights returns weights of 0 for a valid configuration.
func NewWeights(c Config) *Weights {
	w := &Weights{Config: c, Tensors: c.tensors()}
	w.allocate()
	return w
}

// Parameters returns the number of parameters of a model.
func (c Config) Parameters() int {
	n := 0
	for _, t := range c.tensors() {
		n += elements(t.Shape)
	}
	return n
}

// tensors returns the names and shapes of all parameters, in the order of
// Weights.Data.
func (c Config) tensors() []Tensor {
	var all []Tensor
	h, q, kv := c.Hidden, c.queryWidth(), c.kvWidth()
	add := func(name string, shape ...int) {
		all = append(all, Tensor{Name: name, Shape: shape})
	}
	add("model.embed_tokens.weight", c.Vocabulary, h)
	for l := range c.Layers {
		prefix := fmt.Sprintf("model.layers.%d.", l)
		add(prefix+"input_layernorm.weight", h)
		add(prefix+"self_attn.q_proj.weight", q, h)
		add(prefix+"self_attn.k_proj.weight", kv, h)
		add(prefix+"self_attn.v_proj.weight", kv, h)
		add(prefix+"self_attn.q_proj.bias", q)
		add(prefix+"self_attn.k_proj.bias", kv)
		add(prefix+"self_attn.v_proj.bias", kv)
		add(prefix+"self_attn.o_proj.weight", h, q)
		add(prefix+"post_attention_layernorm.weight", h)
		add(prefix+"mlp.gate_proj.weight", c.MLP, h)
		add(prefix+"mlp.up_proj.weight", c.MLP, h)
		add(prefix+"mlp.down_proj.weight", h, c.MLP)
	}
	add("model.norm.weight", h)
	if !c.TieEmbeddings {
		add("lm_head.weight", c.Vocabulary, h)
	}
	return all
}

// allocate allocates Data and sets the tensors and the fused views.
func (w *Weights) allocate() {
	total := 0
	for _, t := range w.Tensors {
		total += elements(t.Shape)
	}
	w.Data = make([]float32, total)
	rest := w.Data
	for i := range w.Tensors {
		n := elements(w.Tensors[i].Shape)
		w.Tensors[i].Data, rest = rest[:n:n], rest[n:]
	}
	c := w.Config
	rest = w.Data
	take := func(n int) []float32 {
		view := rest[:n:n]
		rest = rest[n:]
		return view
	}
	w.embed = take(c.Vocabulary * c.Hidden)
	for range c.Layers {
		w.layers = append(w.layers, layerWeights{
			attentionNorm: take(c.Hidden),
			qkv:           take(c.qkvWidth() * c.Hidden),
			qkvBias:       take(c.qkvWidth()),
			out:           take(c.Hidden * c.queryWidth()),
			mlpNorm:       take(c.Hidden),
			gateUp:        take(2 * c.MLP * c.Hidden),
			down:          take(c.Hidden * c.MLP),
		})
	}
	w.norm = take(c.Hidden)
	w.head = w.embed
	if !c.TieEmbeddings {
		w.head = take(c.Vocabulary * c.Hidden)
	}
}

func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// Initialize draws new weights from a normal distribution with deviation InitStd.
// The deviation of projections into the residual stream is divided by
// sqrt(2*Layers) as in GPT-2. Norms are 1, biases 0. The same seed gives the same
// weights.
func (w *Weights) Initialize(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	fill := func(view []float32, std float64) {
		for i := range view {
			view[i] = float32(rng.NormFloat64() * std)
		}
	}
	ones := func(view []float32) {
		for i := range view {
			view[i] = 1
		}
	}
	std := w.Config.InitStd
	residual := std / math.Sqrt(2*float64(w.Config.Layers))
	fill(w.embed, std)
	for _, l := range w.layers {
		ones(l.attentionNorm)
		fill(l.qkv, std)
		clear(l.qkvBias)
		fill(l.out, residual)
		ones(l.mlpNorm)
		fill(l.gateUp, std)
		fill(l.down, residual)
	}
	ones(w.norm)
	if !w.Config.TieEmbeddings {
		fill(w.head, std)
	}
}
