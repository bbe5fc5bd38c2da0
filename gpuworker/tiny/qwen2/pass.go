package qwen2

import (
	"math"

	"codea1/gpuworker/tiny/kernel"
)

// Group is a prompt with its responses. A pass computes the prompt once. Each
// response attends to the prompt and to itself.
type Group struct {
	Prompt    []int32   // not empty
	Responses [][]int32 // each not empty
}

// Rows returns the number of tokens that a pass over the group computes. It does
// not compute the last token of a response, because no token follows.
func (g Group) Rows() int {
	rows := len(g.Prompt)
	for _, r := range g.Responses {
		rows += len(r) - 1
	}
	return rows
}

// segment is a range of rows that attend to the prompt and to themselves.
type segment struct {
	start, rows int
	before      int // number of prompt rows before it; 0 for the prompt itself
	scores      int // start of its probabilities in activations.probs
}

func (s segment) keys() int { return s.before + s.rows }

// activations are those of one layer. The backward pass reads them.
type activations struct {
	input        []float32 // [R, H] residual stream before the layer
	attentionInv []float32 // [R] of RMSNorm
	normed       []float32 // [R, H]
	qkv          []float32 // [R, Q+2KV]; queries and keys rotated, queries scaled
	probs        []float32 // segments of [Heads, rows, keys]
	mixed        []float32 // [R, Q] attention's output
	middle       []float32 // [R, H] residual stream after attention
	mlpInv       []float32 // [R]
	mlpNormed    []float32 // [R, H]
	gateUp       []float32 // [R, 2*MLP]
	gated        []float32 // [R, MLP]
}

// Pass computes groups one after the other and reuses its buffers. One goroutine
// may use it at a time.
type Pass struct {
	net      *Network
	tokens   []int32
	position []int
	segments []segment
	layers   []activations
	output   []float32 // [R, H] residual stream after the last layer

	headScratch
	attentionScratch
	gradientScratch
}

// NewPass returns a pass over the network.
func NewPass(n *Network) *Pass {
	return &Pass{net: n, layers: make([]activations, len(n.layers))}
}

// resize sets the length of *buffer to n. The content is undefined.
func resize[T any](buffer *[]T, n int) []T {
	if cap(*buffer) < n {
		*buffer = make([]T, n+n/4)
	}
	*buffer = (*buffer)[:n]
	return *buffer
}

// layOut sets the rows and segments of a group.
func (p *Pass) layOut(g Group) {
	p.tokens, p.position, p.segments = p.tokens[:0], p.position[:0], p.segments[:0]
	scores := 0
	add := func(tokens []int32, before int) {
		s := segment{start: len(p.tokens), rows: len(tokens), before: before, scores: scores}
		p.segments = append(p.segments, s)
		scores += p.net.Weights.Config.Heads * s.rows * s.keys()
		for i, id := range tokens {
			p.tokens = append(p.tokens, id)
			p.position = append(p.position, before+i)
		}
	}
	add(g.Prompt, 0)
	for _, r := range g.Responses {
		add(r[:len(r)-1], len(g.Prompt))
	}
}

// probsSize is the length of activations.probs.
func (p *Pass) probsSize() int {
	last := p.segments[len(p.segments)-1]
	return last.scores + p.net.Weights.Config.Heads*last.rows*last.keys()
}

// forward computes the residual stream after the last layer. With keep it keeps
// the activations of every layer for the backward pass. Without keep all layers
// use the buffers of the first.
func (p *Pass) forward(g Group, keep bool) {
	p.layOut(g)
	p.embed(p.stream(0, keep))
	for l := range p.layers {
		p.layer(l, keep)
	}
}

// stream returns the buffer of the residual stream before layer l.
func (p *Pass) stream(l int, keep bool) []float32 {
	size := len(p.tokens) * p.net.Weights.Config.Hidden
	switch {
	case l == len(p.layers):
		return resize(&p.output, size)
	case keep:
		return resize(&p.layers[l].input, size)
	}
	return resize(&p.layers[0].input, size)
}

func (p *Pass) embed(x []float32) {
	h := p.net.Weights.Config.Hidden
	for i, id := range p.tokens {
		copy(x[i*h:][:h], p.net.Weights.embed[int(id)*h:])
	}
}

// layer computes layer l. It reads the layer's input stream and sets the input
// stream of the next layer.
func (p *Pass) layer(l int, keep bool) {
	c := p.net.Weights.Config
	w, packed := &p.net.Weights.layers[l], &p.net.layers[l]
	a := &p.layers[0]
	if keep {
		a = &p.layers[l]
	}
	rows, h, qkvWidth := len(p.tokens), c.Hidden, c.qkvWidth()
	x := a.input

	normed := resize(&a.normed, rows*h)
	inv := resize(&a.attentionInv, rows)
	for i := range rows {
		inv[i] = kernel.RMSNorm(normed[i*h:][:h], x[i*h:][:h], w.attentionNorm, float32(c.NormEpsilon))
	}
	qkv := resize(&a.qkv, rows*qkvWidth)
	kernel.MatMul(qkv, qkvWidth, normed, h, rows, &packed.qkv.forward, false)
	for i := range rows {
		p.net.positionRow(qkv[i*qkvWidth:][:qkvWidth], w.qkvBias, p.position[i])
	}
	p.attend(a)

	middle := resize(&a.middle, rows*h)
	copy(middle, x)
	kernel.MatMul(middle, h, a.mixed, c.queryWidth(), rows, &packed.out.forward, true)

	mlpNormed := resize(&a.mlpNormed, rows*h)
	mlpInv := resize(&a.mlpInv, rows)
	for i := range rows {
		mlpInv[i] = kernel.RMSNorm(mlpNormed[i*h:][:h], middle[i*h:][:h], w.mlpNorm, float32(c.NormEpsilon))
	}
	gateUp := resize(&a.gateUp, rows*2*c.MLP)
	kernel.MatMul(gateUp, 2*c.MLP, mlpNormed, h, rows, &packed.gateUp.forward, false)
	gated := resize(&a.gated, rows*c.MLP)
	for i := range rows {
		row := gateUp[i*2*c.MLP:][:2*c.MLP]
		kernel.SwiGLU(gated[i*c.MLP:][:c.MLP], row[:c.MLP], row[c.MLP:])
	}
	next := p.stream(l+1, keep)
	copy(next, middle)
	kernel.MatMul(next, h, gated, c.MLP, rows, &packed.down.forward, true)
}

// positionRow adds the bias to a row of queries, keys and values, rotates queries
// and keys, and multiplies the queries by 1/sqrt(HeadSize).
func (n *Network) positionRow(row, bias []float32, position int) {
	c := n.Weights.Config
	kernel.Axpy(1, bias, row)
	q := c.queryWidth()
	n.rotary.rotate(row[:q], position, n.queryScale())
	n.rotary.rotate(row[q:q+c.kvWidth()], position, 1)
}

func (n *Network) queryScale() float32 {
	return float32(1 / math.Sqrt(float64(n.Weights.Config.HeadSize)))
}

// PassBytes returns the size of the buffers of a pass over rows tokens. With keep
// they hold the activations of every layer and the scratch of the backward pass.
func (c Config) PassBytes(rows int, keep bool) int {
	layer := 4*c.Hidden + 2 + c.qkvWidth() + c.queryWidth() + 3*c.MLP + c.Heads*rows
	floats := rows*(layer+c.Hidden) + headRows*(c.Vocabulary+c.Hidden)
	if keep {
		floats += rows * layer * (c.Layers - 1)
		floats += rows*(2*c.Hidden+c.qkvWidth()+c.queryWidth()+3*c.MLP) + rows*rows + headRows*c.Hidden + c.Vocabulary
	}
	return 4 * (floats + floats/4) // resize adds a quarter
}

// CacheBytes returns the size of the keys and values of tokens positions.
func (c Config) CacheBytes(tokens int) int { return 4 * 2 * c.Layers * c.kvWidth() * tokens }
