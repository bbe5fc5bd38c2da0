package qwen2

import (
	"iter"

	"codea1/gpuworker/tiny/kernel"
)

// headRows is the number of rows of logits that are computed together. They fit
// the second-level cache.
const headRows = 64

// scored is a response token with the row of the pass that predicts it.
type scored struct {
	response, token int
	row             int
	id              int32
}

type headScratch struct {
	targets  []scored
	normed   []float32 // [headRows, H]
	inverse  [headRows]float32
	logits   []float32 // [headRows, Vocabulary]
	tempered []float32 // [Vocabulary]
	dNormed  []float32 // [headRows, H]
}

// Score is the result of a pass for one response token.
type Score struct {
	Response, Token int     // the token is group.Responses[Response][Token]
	LogProb         float64 // nats
	Entropy         float64 // nats, of the distribution at the token's position
}

// LogProbs computes the log-prob of every response token at a temperature and
// calls visit for each in order. Entropy is 0.
func (p *Pass) LogProbs(g Group, temperature float64, visit func(Score)) {
	p.forward(g, false)
	p.findTargets(g)
	v := p.net.Weights.Config.Vocabulary
	for targets := range p.chunks() {
		logits := p.chunkLogits(targets)
		for i, t := range targets {
			row := logits[i*v:][:v]
			temper(row, temperature)
			chosen := row[t.id]
			_, logSum := kernel.SoftmaxInPlace(row)
			visit(Score{Response: t.response, Token: t.token, LogProb: float64(min(0, chosen-logSum))})
		}
	}
}

// temper divides logits by the temperature.
func temper(logits []float32, temperature float64) {
	if temperature == 1 {
		return
	}
	scale := float32(1 / temperature)
	for i := range logits {
		logits[i] *= scale
	}
}

// findTargets sets p.targets to the response tokens of a group after layOut. The
// prompt's last row predicts the first token of each response.
func (p *Pass) findTargets(g Group) {
	p.targets = p.targets[:0]
	for r, response := range g.Responses {
		for t, id := range response {
			row := p.segments[r+1].start + t - 1
			if t == 0 {
				row = len(g.Prompt) - 1
			}
			p.targets = append(p.targets, scored{response: r, token: t, row: row, id: id})
		}
	}
}

// chunks yields the targets in chunks of at most headRows.
func (p *Pass) chunks() iter.Seq[[]scored] {
	return func(yield func([]scored) bool) {
		for rest := p.targets; len(rest) > 0; {
			n := min(headRows, len(rest))
			if !yield(rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}

// chunkLogits computes the final norm and the logits [len(targets), Vocabulary]
// of the targets' rows.
func (p *Pass) chunkLogits(targets []scored) []float32 {
	c := p.net.Weights.Config
	h := c.Hidden
	normed := resize(&p.normed, headRows*h)
	logits := resize(&p.logits, headRows*c.Vocabulary)
	for i, t := range targets {
		p.inverse[i] = kernel.RMSNorm(normed[i*h:][:h], p.output[t.row*h:][:h], p.net.Weights.norm, float32(c.NormEpsilon))
	}
	kernel.MatMul(logits, c.Vocabulary, normed, h, len(targets), &p.net.head.forward, false)
	return logits[:len(targets)*c.Vocabulary]
}
