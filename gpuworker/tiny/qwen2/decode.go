package qwen2

import "codea1/gpuworker/tiny/kernel"

// Prefix holds the keys and values of a prompt and the logits of the next token.
// The keys and values are packed, so that all sequences of the prompt attend to
// it in one product.
type Prefix struct {
	Logits []float32 // [Vocabulary]

	length int
	keys   []kernel.Packed // [Layers*KVHeads] of [HeadSize, length]
	values []kernel.Packed // [Layers*KVHeads] of [length, HeadSize]
}

// Prefill computes a prompt, which is not empty, into prefix. It reuses prefix's
// memory.
func (p *Pass) Prefill(prompt []int32, prefix *Prefix) {
	c := p.net.Weights.Config
	q, kv, width := c.queryWidth(), c.kvWidth(), c.qkvWidth()
	prefix.length = len(prompt)
	keys := resize(&prefix.keys, c.Layers*c.KVHeads)
	values := resize(&prefix.values, c.Layers*c.KVHeads)
	p.layOut(Group{Prompt: prompt})
	p.embed(p.stream(0, false))
	for l := range p.layers {
		p.layer(l, false)
		qkv := p.layers[0].qkv
		for head := range c.KVHeads {
			at := l*c.KVHeads + head
			kernel.PackView(&keys[at], qkv[q+head*c.HeadSize:], width, c.HeadSize, len(prompt), true)
			kernel.PackView(&values[at], qkv[q+kv+head*c.HeadSize:], width, len(prompt), c.HeadSize, false)
		}
	}
	p.targets = append(p.targets[:0], scored{row: len(prompt) - 1})
	copy(resize(&prefix.Logits, c.Vocabulary), p.chunkLogits(p.targets))
}

// storeRow stores the keys, or values, of one position in a cache [KVHeads,
// capacity, HeadSize].
func storeRow(c Config, cache, row []float32, position, capacity int) {
	for head := range c.KVHeads {
		copy(cache[(head*capacity+position)*c.HeadSize:][:c.HeadSize], row[head*c.HeadSize:])
	}
}

// Decoder extends a batch of sequences by one token at a time. One goroutine may
// use it at a time.
type Decoder struct {
	net      *Network
	capacity int // tokens after the prefix, per slot
	slots    []slot

	x, normed, qkv, mixed, gateUp, gated []float32 // one row per sequence of the batch
	logits, scores                       []float32
}

// slot is one sequence: a shared prefix and the tokens decoded after it.
type slot struct {
	prefix       *Prefix
	length       int
	keys, values []float32 // [Layers, KVHeads, capacity, HeadSize]
}

// NewDecoder returns a decoder with the given number of slots. Each slot has
// capacity tokens after its prefix.
func NewDecoder(n *Network, slots, capacity int) *Decoder {
	c := n.Weights.Config
	d := &Decoder{net: n, capacity: capacity, slots: make([]slot, slots)}
	for i := range d.slots {
		size := c.Layers * c.kvWidth() * capacity
		d.slots[i].keys, d.slots[i].values = make([]float32, size), make([]float32, size)
	}
	resize(&d.x, slots*c.Hidden)
	resize(&d.normed, slots*c.Hidden)
	resize(&d.qkv, slots*c.qkvWidth())
	resize(&d.mixed, slots*c.queryWidth())
	resize(&d.gateUp, slots*2*c.MLP)
	resize(&d.gated, slots*c.MLP)
	resize(&d.logits, slots*c.Vocabulary)
	return d
}

// Start starts a new sequence after prefix in a slot.
func (d *Decoder) Start(index int, prefix *Prefix) {
	d.slots[index].prefix, d.slots[index].length = prefix, 0
	resize(&d.scores, max(len(d.scores), len(d.slots)*(prefix.length+d.capacity)))
}

// Step appends tokens[i] to slot batch[i] for each i and returns the logits
// [len(batch), Vocabulary] of the next tokens, valid until the next call. It does
// not allocate. The caller must not exceed the capacity of a slot. Step is fastest
// if slots with the same prefix are neighbours in the batch; the order does not
// change the results.
func (d *Decoder) Step(batch []int, tokens []int32) []float32 {
	c, w := d.net.Weights.Config, d.net.Weights
	h, rows := c.Hidden, len(batch)
	for i, id := range tokens {
		copy(d.x[i*h:][:h], w.embed[int(id)*h:])
	}
	for l := range d.net.layers {
		d.layer(l, batch)
	}
	for i := range rows {
		kernel.RMSNorm(d.normed[i*h:][:h], d.x[i*h:][:h], w.norm, float32(c.NormEpsilon))
	}
	logits := d.logits[:rows*c.Vocabulary]
	kernel.MatMul(logits, c.Vocabulary, d.normed, h, rows, &d.net.head.forward, false)
	for _, s := range batch {
		d.slots[s].length++
	}
	return logits
}

func (d *Decoder) layer(l int, batch []int) {
	c := d.net.Weights.Config
	w, packed := &d.net.Weights.layers[l], &d.net.layers[l]
	h, q, qkvWidth, rows := c.Hidden, c.queryWidth(), c.qkvWidth(), len(batch)
	for i := range rows {
		kernel.RMSNorm(d.normed[i*h:][:h], d.x[i*h:][:h], w.attentionNorm, float32(c.NormEpsilon))
	}
	kernel.MatMul(d.qkv, qkvWidth, d.normed, h, rows, &packed.qkv.forward, false)
	for i, index := range batch {
		row := d.qkv[i*qkvWidth:][:qkvWidth]
		s := &d.slots[index]
		d.net.positionRow(row, w.qkvBias, s.prefix.length+s.length)
		cache := l * c.kvWidth() * d.capacity
		storeRow(c, s.keys[cache:], row[q:], s.length, d.capacity)
		storeRow(c, s.values[cache:], row[q+c.kvWidth():], s.length, d.capacity)
	}
	for first := 0; first < rows; {
		next := first + 1
		for next < rows && d.slots[batch[next]].prefix == d.slots[batch[first]].prefix {
			next++
		}
		for head := range c.Heads {
			d.attend(l, head, batch[first:next], first)
		}
		first = next
	}
	kernel.MatMul(d.x, h, d.mixed, q, rows, &packed.out.forward, true)
	for i := range rows {
		kernel.RMSNorm(d.normed[i*h:][:h], d.x[i*h:][:h], w.mlpNorm, float32(c.NormEpsilon))
	}
	kernel.MatMul(d.gateUp, 2*c.MLP, d.normed, h, rows, &packed.gateUp.forward, false)
	for i := range rows {
		row := d.gateUp[i*2*c.MLP:][:2*c.MLP]
		kernel.SwiGLU(d.gated[i*c.MLP:][:c.MLP], row[:c.MLP], row[c.MLP:])
	}
	kernel.MatMul(d.x, h, d.gated, c.MLP, rows, &packed.down.forward, true)
}

// attend computes attention of the newest tokens of slots that share a prefix.
// Their rows of the batch start at first.
func (d *Decoder) attend(l, head int, slots []int, first int) {
	c := &d.net.Weights.Config
	size, q, width := c.HeadSize, c.queryWidth(), c.qkvWidth()
	prefix := d.slots[slots[0]].prefix
	kvHead := l*c.KVHeads + head/c.grouped()
	recent := kvHead * d.capacity * size
	row := prefix.length + d.capacity
	scores := d.scores[:len(slots)*row]
	queries, out := d.qkv[first*width+head*size:], d.mixed[first*q+head*size:]

	kernel.MatMul(scores, row, queries, width, len(slots), &prefix.keys[kvHead], false)
	for i, index := range slots {
		s := &d.slots[index]
		own := scores[i*row+prefix.length:][:s.length+1]
		kernel.DotRows(own, queries[i*width:][:size], s.keys[recent:], size)
		kernel.SoftmaxInPlace(scores[i*row:][:prefix.length+len(own)])
	}
	kernel.MatMul(out, q, scores, row, len(slots), &prefix.values[kvHead], false)
	for i, index := range slots {
		s := &d.slots[index]
		own := scores[i*row+prefix.length:][:s.length+1]
		kernel.AxpyRows(out[i*q:][:size], own, s.values[recent:], size)
	}
}
