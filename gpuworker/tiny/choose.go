package tiny

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"codea1/gpuworker"
	"codea1/gpuworker/tiny/kernel"
)

// chooser draws tokens from logits. Its scratch serves one goroutine.
type chooser struct {
	params  gpuworker.SamplingParams
	probs   []float32
	allowed []int32 // ids by falling probability, when not all are
}

func newChooser(params gpuworker.SamplingParams, vocabulary int) *chooser {
	return &chooser{params: params, probs: make([]float32, vocabulary), allowed: make([]int32, 0, vocabulary)}
}

// choose draws one token and returns its log-prob in nats under the tempered
// distribution, before top-k and top-p. It uses up one number of rng.
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

// draw inverts the cumulative distribution at u in [0, 1). The probabilities
// add up to 1 only nearly: u is a share of what they do add up to, lest the
// remainder fall to the last token, however improbable.
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

// drawAllowed draws among the TopK most probable tokens, and of these among the
// fewest that hold TopP of their mass.
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
	mass := c.mass(c.allowed)
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

func (c *chooser) mass(ids []int32) (sum float64) {
	for _, id := range ids {
		sum += float64(c.probs[id])
	}
	return sum
}
