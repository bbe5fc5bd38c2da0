package qwen2

import "codea1/gpuworker/tiny/kernel"

// gradientScratch holds the gradients of one layer's activations.
type gradientScratch struct {
	dStream []float32 // [R, H]
	dNorm   []float32 // [R, H]
	dQKV    []float32 // [R, Q+2KV]
	dMixed  []float32 // [R, Q]
	dGateUp []float32 // [R, 2*MLP]
	dGated  []float32 // [R, MLP]
}

// Backward computes the forward and the backward pass of a group. It calls
// dLogProb for every response token in order, which returns the derivative of the
// loss by the token's log-prob at the given temperature. It adds the gradient of
// the loss to grad.
func (p *Pass) Backward(g Group, temperature float64, grad *Weights, dLogProb func(Score) float64) {
	p.forward(g, true)
	p.findTargets(g)
	p.headBackward(temperature, grad, dLogProb)
	for l := len(p.layers) - 1; l >= 0; l-- {
		p.layerBackward(l, grad)
	}
	h := p.net.Weights.Config.Hidden
	for i, id := range p.tokens {
		kernel.Axpy(1, p.dStream[i*h:][:h], grad.embed[int(id)*h:][:h])
	}
}

// headBackward sets dStream, the gradient of the stream after the last layer.
// With p = softmax(logits/T), dLogProb(y)/dLogits = (onehot(y) - p)/T.
func (p *Pass) headBackward(temperature float64, grad *Weights, dLogProb func(Score) float64) {
	c := p.net.Weights.Config
	h, v := c.Hidden, c.Vocabulary
	dStream := resize(&p.dStream, len(p.tokens)*h)
	clear(dStream)
	tempered := resize(&p.tempered, v)
	for targets := range p.chunks() {
		logits := p.chunkLogits(targets)
		for i, t := range targets {
			row := logits[i*v:][:v]
			temper(row, temperature)
			copy(tempered, row)
			_, logSum := kernel.SoftmaxInPlace(row)
			slope := float32(dLogProb(Score{
				Response: t.response, Token: t.token,
				LogProb: float64(min(0, tempered[t.id]-logSum)),
				Entropy: float64(logSum - kernel.Dot(row, tempered)),
			}) / temperature)
			for j := range row {
				row[j] *= -slope
			}
			row[t.id] += slope
		}
		dNormed := resize(&p.dNormed, headRows*h)
		kernel.MatMul(dNormed, h, logits, v, len(targets), &p.net.head.backward, false)
		kernel.MatMulTA(grad.head, h, logits, v, p.normed, h, len(targets), v, h)
		for i, t := range targets {
			kernel.RMSNormBackward(dStream[t.row*h:][:h], grad.norm, p.output[t.row*h:][:h],
				p.net.Weights.norm, dNormed[i*h:][:h], p.inverse[i])
		}
	}
}

// layerBackward changes dStream from the gradient after layer l to the gradient
// before it. It adds the gradients of the layer's weights to grad.
func (p *Pass) layerBackward(l int, grad *Weights) {
	c := p.net.Weights.Config
	a, w, g, packed := &p.layers[l], &p.net.Weights.layers[l], &grad.layers[l], &p.net.layers[l]
	rows, h, q, qkvWidth, mlp := len(p.tokens), c.Hidden, c.queryWidth(), c.qkvWidth(), c.MLP
	dStream := p.dStream

	dGated := resize(&p.dGated, rows*mlp)
	kernel.MatMul(dGated, mlp, dStream, h, rows, &packed.down.backward, false)
	kernel.MatMulTA(g.down, mlp, dStream, h, a.gated, mlp, rows, h, mlp)
	dGateUp := resize(&p.dGateUp, rows*2*mlp)
	for i := range rows {
		in, out := a.gateUp[i*2*mlp:][:2*mlp], dGateUp[i*2*mlp:][:2*mlp]
		kernel.SwiGLUBackward(out[:mlp], out[mlp:], in[:mlp], in[mlp:], dGated[i*mlp:][:mlp])
	}
	dNorm := resize(&p.dNorm, rows*h)
	kernel.MatMul(dNorm, h, dGateUp, 2*mlp, rows, &packed.gateUp.backward, false)
	kernel.MatMulTA(g.gateUp, h, dGateUp, 2*mlp, a.mlpNormed, h, rows, 2*mlp, h)
	for i := range rows {
		kernel.RMSNormBackward(dStream[i*h:][:h], g.mlpNorm, a.middle[i*h:][:h], w.mlpNorm, dNorm[i*h:][:h], a.mlpInv[i])
	}

	dMixed := resize(&p.dMixed, rows*q)
	kernel.MatMul(dMixed, q, dStream, h, rows, &packed.out.backward, false)
	kernel.MatMulTA(g.out, q, dStream, h, a.mixed, q, rows, h, q)
	dQKV := resize(&p.dQKV, rows*qkvWidth)
	p.attendBackward(a, dQKV, dMixed)
	for i := range rows {
		row := dQKV[i*qkvWidth:][:qkvWidth]
		p.net.rotary.unrotate(row[:q], p.position[i], p.net.queryScale())
		p.net.rotary.unrotate(row[q:q+c.kvWidth()], p.position[i], 1)
		kernel.Axpy(1, row, g.qkvBias)
	}
	kernel.MatMul(dNorm, h, dQKV, qkvWidth, rows, &packed.qkv.backward, false)
	kernel.MatMulTA(g.qkv, h, dQKV, qkvWidth, a.normed, h, rows, qkvWidth, h)
	for i := range rows {
		kernel.RMSNormBackward(dStream[i*h:][:h], g.attentionNorm, a.input[i*h:][:h], w.attentionNorm, dNorm[i*h:][:h], a.attentionInv[i])
	}
}
