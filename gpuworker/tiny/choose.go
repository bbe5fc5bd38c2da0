package tiny

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"codea1/gpuworker"
	"codea1/gpuworker/tiny/kernel"
)

// chooser draws tokens from logits. One goroutine may use it at a time.
type chooser struct {
	params  gpuworker.SamplingParams
	probs   []float32
	allowed []int32 // ids in descending order of probability, for top-k and top-p
}

func newChooser(params gpuworker.SamplingParams, vocabulary int) *chooser {
	return &chooser{params: params, probs: make([]float32, vocabulary), allowed: make([]int32, 0, vocabulary)}
}

// choose draws one token. It returns the log-prob in nats of the distribution
// after the temperature and before top-k and top-p. It draws one number from rng.
func (c *chooser) choose(logits []float32, rng *rand.Rand) (id int32, logProb float32, err error) {
	scale := float32(1 / c.params.Temperature)
	for i, v := range logits {
		c.probs[i] = v * scale
	}
	_, logSum := kernel.SoftmaxInPlace(c.probs)
	if logSum-logSum != 0 {
		return 0, 0, fmt.Errorf("logits: %w", ErrDiverged)
	}
	u := rng.Float64()
	if c.params.TopK > 0 || c.params.TopP < 1 {
		id = c.drawAllowed(u)
	} else {
		id = c.draw(u)
	}
	return id, min(0, logits[id]*scale-logSum), nil
}

// draw inverts the cumulative distribution at u in [0, 1). The sum of the
// probabilities is not exactly 1, so u is scaled by the sum. Otherwise the
// remainder would go to the last token.
func (c *chooser) draw(u float64) int32 {
	mass := 0.0
	for _, p := range c.probs {
		mass += float64(p)
	}
	cumulative, last := 0.0, 0
	for i, p := range c.probs {
		if p == 0 {
			continue
		}
		last = i
		if cumulative += float64(p); u*mass < cumulative {
			break
		}
	}
	return int32(last)
}

// drawAllowed draws from the smallest set of most probable tokens that has TopP
// of the mass of the TopK most probable ones.
func (c *chooser) drawAllowed(u float64) int32 {
	c.allowed = c.allowed[:0]
	for i, p := range c.probs {
		if p > 0 {
			c.allowed = append(c.allowed, int32(i))
		}
	}
	slices.SortFunc(c.allowed, func(a, b int32) int {
		switch pa, pb := c.probs[a], c.probs[b]; {
		case pa > pb:
			return -1
		case pa < pb:
			return 1
		}
		return int(a - b)
	})
	if k := c.params.TopK; k > 0 && k < len(c.allowed) {
		c.allowed = c.allowed[:k]
	}
	mass := 0.0
	for _, id := range c.allowed {
		mass += float64(c.probs[id])
	}
	if c.params.TopP < 1 {
		n, kept := 0, 0.0
		for n < len(c.allowed) && kept < c.params.TopP*mass {
			kept += float64(c.probs[c.allowed[n]])
			n++
		}
		c.allowed = c.allowed[:n]
		mass = kept
	}
	cumulative := 0.0
	for _, id := range c.allowed {
		if cumulative += float64(c.probs[id]); u*mass < cumulative {
			return id
		}
	}
	return c.allowed[len(c.allowed)-1]
}
