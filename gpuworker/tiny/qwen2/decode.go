package qwen2

import "codea1/gpuworker/tiny/kernel"

// Prefix is a prompt's keys and values, and the logits of what follows it. Many
// sequences may read it at once.
type Prefix struct {
	Logits []float32 // [Vocabulary]

	length       int
	keys, values []float32 // [Layers, KVHeads, length, HeadSize]
}

// Prefill computes a prompt, which is not empty, into prefix, whose memory is
// reused.
func (p *Pass) Prefill(prompt []int32, prefix *Prefix) {
	c := p.net.Weights.Config
	prefix.length = len(prompt)
	perLayer := c.kvWidth() * len(prompt)
	keys := resize(&prefix.keys, c.Layers*perLayer)
	values := resize(&prefix.values, c.Layers*perLayer)
	p.layOut(Group{Prompt: prompt})
	p.embed(p.stream(0, false))
	for l := range p.layers {
		p.layer(l, false)
		for i := range prompt {
			row := p.layers[0].qkv[i*c.qkvWidth()+c.queryWidth():]
			storeRow(c, keys[l*perLayer:], row, i, len(prompt))
			storeRow(c, values[l*perLayer:], row[c.kvWidth():], i, len(prompt))
		}
	}
	p.targets = append(p.targets[:0], scored{row: len(prompt) - 1})
	copy(resize(&prefix.Logits, c.Vocabulary), p.chunkLogits(p.targets))
}

// storeRow puts one position's keys, or values, into a cache [KVHeads,
// capacity, HeadSize].
func storeRow(c Config, cache, row []float32, position, capacity int) {
	for head := range c.KVHeads {
		copy(cache[(head*capacity+position)*c.HeadSize:][:c.HeadSize], row[head*c.HeadSize:])
	}
}

// Decoder extends a batch of sequences by one token at a time. It serves one
// goroutine at a time.
type Decoder struct {
	net      *Network
	capacity int // tokens after the prefix, per slot
	slots    []slot

	x, normed, qkv, mixed, gateUp, gated []float32 // one row per sequence of the batch
	logits, scores                       []float32
}

// slot is one sequence: a shared prefix and what was decoded since.
type slot struct {
	prefix       *Prefix
	length       int
	keys, values []float32 // [Layers, KVHeads, capacity, HeadSize]
}

// NewDecoder returns a decoder of so many slots, each for capacity tokens after
// its prefix.
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

// Start lets a slot continue prefix.
func (d *Decoder) Start(index int, prefix *Prefix) {
	d.slots[index].prefix, d.slots[index].length = prefix, 0
	resize(&d.scores, max(len(d.scores), prefix.length+d.capacity))
}

// Step appends tokens[i] to slot batch[i], for each i, and returns the logits
// [len(batch), Vocabulary] of what follows, valid until the next call. It does
// not allocate. A slot takes at most its capacity of tokens.
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
		for head := range c.Heads {
			d.attend(l, head, s, d.mixed[i*q+head*c.HeadSize:][:c.HeadSize], row[head*c.HeadSize:][:c.HeadSize])
		}
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

// attend mixes the values of a slot, its newest token included, into out.
func (d *Decoder) attend(l, head int, s *slot, out, query []float32) {
	c := d.net.Weights.Config
	before, own := s.prefix.length, s.length+1
	kvHead := l*c.KVHeads + head/c.grouped()
	shared := kvHead * before * c.HeadSize
	recent := kvHead * d.capacity * c.HeadSize
	scores := d.scores[:before+own]
	kernel.DotRows(scores[:before], query, s.prefix.keys[shared:], c.HeadSize)
	kernel.DotRows(scores[before:], query, s.keys[recent:], c.HeadSize)
	kernel.SoftmaxInPlace(scores)
	clear(out)
	kernel.AxpyRows(out, scores[:before], s.prefix.values[shared:], c.HeadSize)
	kernel.AxpyRows(out, scores[before:], s.values[recent:], c.HeadSize)
}
