package qwen2

import "codea1/gpuworker/tiny/kernel"

// Network is Weights prepared for computation: matrices packed for package kernel
// and the table of rotations. Passes and decoders may use it concurrently, but
// not during Pack or PackBackward.
type Network struct {
	Weights *Weights

	layers []layerPacks
	head   packs // [H, Vocabulary]
	rotary rotary
}

type layerPacks struct {
	qkv, out, gateUp, down packs
}

// packs is a packed linear layer [out, in] for both passes.
type packs struct {
	forward  kernel.Packed // x*Wᵀ
	backward kernel.Packed // dy*W
}

// pack packs a weight for one pass.
func (p *packs) pack(weight []float32, out, in int, backward bool) {
	if backward {
		kernel.Pack(&p.backward, weight, out, in, false)
	} else {
		kernel.Pack(&p.forward, weight, in, out, true)
	}
}

// NewNetwork prepares w for forward passes.
func NewNetwork(w *Weights) *Network {
	n := &Network{
		Weights: w,
		layers:  make([]layerPacks, w.Config.Layers),
		rotary:  newRotary(w.Config),
	}
	n.Pack()
	return n
}

// Pack packs changed weights for forward passes and decoders.
func (n *Network) Pack() { n.pack(false) }

// PackBackward packs changed weights for Pass.Backward, which needs both Pack and
// PackBackward.
func (n *Network) PackBackward() { n.pack(true) }

func (n *Network) pack(backward bool) {
	c := n.Weights.Config
	for i := range n.layers {
		p, w := &n.layers[i], &n.Weights.layers[i]
		p.qkv.pack(w.qkv, c.qkvWidth(), c.Hidden, backward)
		p.out.pack(w.out, c.Hidden, c.queryWidth(), backward)
		p.gateUp.pack(w.gateUp, 2*c.MLP, c.Hidden, backward)
		p.down.pack(w.down, c.Hidden, c.MLP, backward)
	}
	n.head.pack(n.Weights.head, c.Vocabulary, c.Hidden, backward)
}
