package qwen2

import "codea1/gpuworker/tiny/kernel"

// attentionScratch holds the keys and values of one segment and head.
type attentionScratch struct {
	keys, values   []float32     // [keys, HeadSize]
	keysT, valuesT kernel.Packed // transposed, for products over the head's dimensions
	keysP, valuesP kernel.Packed // for products over the keys
	dKeys, dValues []float32     // [keys, HeadSize]
	dWeights       []float32     // [rows, keys]
}

// gather copies columns [column, column+size) of the rows that a segment attends
// to: first the prompt's rows, then its own.
func (p *Pass) gather(dst *[]float32, from []float32, width int, s segment, column, size int) []float32 {
	out := resize(dst, s.keys()*size)
	for j := range s.keys() {
		copy(out[j*size:][:size], from[s.keyRow(j)*width+column:])
	}
	return out
}

// keyRow returns the row of the pass with key j of the segment.
func (s segment) keyRow(j int) int {
	if j < s.before {
		return j // the prompt is first in a pass
	}
	return s.start + j - s.before
}

// attend computes causal attention. It reads a.qkv and sets a.probs and a.mixed.
func (p *Pass) attend(a *activations) {
	c := p.net.Weights.Config
	size, q, kv, width := c.HeadSize, c.queryWidth(), c.kvWidth(), c.qkvWidth()
	probs := resize(&a.probs, p.probsSize())
	mixed := resize(&a.mixed, len(p.tokens)*q)
	for _, s := range p.segments {
		if s.rows == 0 {
			continue // a response of one token
		}
		for kvHead := range c.KVHeads {
			keys := p.gather(&p.keys, a.qkv, width, s, q+kvHead*size, size)
			kernel.Pack(&p.keysT, keys, size, s.keys(), true)
			values := p.gather(&p.values, a.qkv, width, s, q+kv+kvHead*size, size)
			kernel.Pack(&p.valuesP, values, s.keys(), size, false)
			for head := kvHead * c.grouped(); head < (kvHead+1)*c.grouped(); head++ {
				weights := s.head(probs, head)
				kernel.MatMul(weights, s.keys(), a.qkv[s.start*width+head*size:], width, s.rows, &p.keysT, false)
				for i := range s.rows {
					row := weights[i*s.keys():][:s.keys()]
					kernel.SoftmaxInPlace(row[:s.before+i+1])
					clear(row[s.before+i+1:])
				}
				kernel.MatMul(mixed[s.start*q+head*size:], q, weights, s.keys(), s.rows, &p.valuesP, false)
			}
		}
	}
}

// head returns the segment's [rows, keys] of one head.
func (s segment) head(probs []float32, head int) []float32 {
	n := s.rows * s.keys()
	return probs[s.scores+head*n:][:n]
}

// attendBackward computes dQKV from dMixed, the gradient of attend's output.
func (p *Pass) attendBackward(a *activations, dQKV, dMixed []float32) {
	c := p.net.Weights.Config
	size, q, kv, width := c.HeadSize, c.queryWidth(), c.kvWidth(), c.qkvWidth()
	clear(dQKV)
	for _, s := range p.segments {
		if s.rows == 0 {
			continue // a response of one token
		}
		for kvHead := range c.KVHeads {
			keys := p.gather(&p.keys, a.qkv, width, s, q+kvHead*size, size)
			kernel.Pack(&p.keysP, keys, s.keys(), size, false)
			values := p.gather(&p.values, a.qkv, width, s, q+kv+kvHead*size, size)
			kernel.Pack(&p.valuesT, values, size, s.keys(), true)
			dKeys := resize(&p.dKeys, s.keys()*size)
			dValues := resize(&p.dValues, s.keys()*size)
			clear(dKeys)
			clear(dValues)
			dWeights := resize(&p.dWeights, s.rows*s.keys())
			for head := kvHead * c.grouped(); head < (kvHead+1)*c.grouped(); head++ {
				weights := s.head(a.probs, head)
				column := s.start*q + head*size
				kernel.MatMul(dWeights, s.keys(), dMixed[column:], q, s.rows, &p.valuesT, false)
				kernel.MatMulTA(dValues, size, weights, s.keys(), dMixed[column:], q, s.rows, s.keys(), size)
				for i := range s.rows {
					row := dWeights[i*s.keys():][:s.keys()]
					seen := s.before + i + 1
					kernel.SoftmaxBackward(row[:seen], weights[i*s.keys():][:seen], row[:seen])
					clear(row[seen:])
				}
				query := s.start*width + head*size
				kernel.MatMul(dQKV[query:], width, dWeights, s.keys(), s.rows, &p.keysP, false)
				kernel.MatMulTA(dKeys, size, dWeights, s.keys(), a.qkv[query:], width, s.rows, s.keys(), size)
			}
			p.scatter(dQKV, width, s, q+kvHead*size, dKeys, size)
			p.scatter(dQKV, width, s, q+kv+kvHead*size, dValues, size)
		}
	}
}

// scatter adds rows that gather would copy to their original rows.
func (p *Pass) scatter(to []float32, width int, s segment, column int, from []float32, size int) {
	for j := range s.keys() {
		kernel.Axpy(1, from[j*size:][:size], to[s.keyRow(j)*width+column:][:size])
	}
}
