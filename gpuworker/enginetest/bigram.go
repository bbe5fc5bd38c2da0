package enginetest

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"codea1/events"
	"codea1/gpuworker"
)

const (
	// alphabet is the Bigram's vocabulary, one token per character; what is not
	// in it reads as '?'. The end token follows it.
	alphabet = " \nabcdefghijklmnopqrstuvwxyz0123456789_=()[],.:+-*/`?"
	endToken = int32(len(alphabet))
	tokens   = len(alphabet) + 1
	// The first token of a response depends on a hash of the prompt, every
	// other one on the token before it.
	promptRows = 16
	rows       = tokens + promptRows
	parameters = rows * tokens
)

// Bigram is a language model with one table of logits: the next token depends
// on the one before it alone. It is a real Sampler and a real Learner, with the
// loss and the optimizer of the design, in float64 and in a few milliseconds.
//
// It is safe for concurrent use.
type Bigram struct {
	mu        sync.Mutex
	weights   []float64 // [rows][tokens]
	reference []float64
	moments   []float64 // AdamW: first and second moments, each [rows][tokens]
	steps     int       // AdamW steps taken
}

var (
	_ gpuworker.Sampler = (*Bigram)(nil)
	_ gpuworker.Learner = (*Bigram)(nil)
)

// NewBigram returns an engine with random weights. Its reference policy is what
// it starts with.
func NewBigram(seed uint64) *Bigram {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := &Bigram{weights: make([]float64, parameters), moments: make([]float64, 2*parameters)}
	for i := range b.weights {
		b.weights[i] = rng.NormFloat64()
	}
	b.reference = slices.Clone(b.weights)
	return b
}

// EncodePrompt implements gpuworker.Sampler.
func (b *Bigram) EncodePrompt(messages []gpuworker.Message) ([]int32, error) {
	var out []int32
	for _, m := range messages {
		for _, r := range strings.ToLower(m.Role + ":" + m.Content + "\n") {
			i := strings.IndexRune(alphabet, r)
			if i < 0 {
				i = strings.IndexByte(alphabet, '?')
			}
			out = append(out, int32(i))
		}
	}
	return out, nil
}

// Sample implements gpuworker.Sampler.
func (b *Bigram) Sample(ctx context.Context, requests []gpuworker.SampleRequest, params gpuworker.SamplingParams) ([][]events.Completion, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if params.TopP != 1 || params.TopK != 0 {
		return nil, fmt.Errorf("bigram: only the whole distribution can be sampled")
	}
	out := make([][]events.Completion, len(requests))
	for i, r := range requests {
		for _, seed := range r.Seeds {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			out[i] = append(out[i], b.complete(r.Prompt, seed, params))
		}
	}
	return out, nil
}

func (b *Bigram) complete(prompt []int32, seed uint64, params gpuworker.SamplingParams) events.Completion {
	rng := rand.New(rand.NewPCG(seed, 2))
	c := events.Completion{Finish: events.FinishLength}
	var text strings.Builder
	row := promptRow(prompt)
	for len(c.Tokens) < params.MaxTokens {
		logProbs := logSoftmax(b.weights, row, params.Temperature)
		token := draw(logProbs, rng.Float64())
		c.Tokens = append(c.Tokens, token)
		c.LogProbs = append(c.LogProbs, float32(logProbs[token]))
		if token == endToken {
			c.Finish = events.FinishStop
			break
		}
		text.WriteByte(alphabet[token])
		row = int(token)
	}
	c.Text = text.String()
	return c
}

// LogProbs implements gpuworker.Learner.
func (b *Bigram) LogProbs(ctx context.Context, policy gpuworker.Policy, sequences []gpuworker.Sequence, temperature float64) ([][]float32, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	weights := b.weights
	if policy == gpuworker.Reference {
		weights = b.reference
	}
	out := make([][]float32, len(sequences))
	for i, s := range sequences {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out[i] = make([]float32, len(s.Tokens))
		for j, row := range rowsOf(&s) {
			out[i][j] = float32(logSoftmax(weights, row, temperature)[s.Tokens[j]])
		}
	}
	return out, nil
}

// Close implements gpuworker.Sampler and gpuworker.Learner.
func (b *Bigram) Close() error { return nil }

// rowsOf returns the table row that predicts each response token.
func rowsOf(s *gpuworker.Sequence) []int {
	out := make([]int, len(s.Tokens))
	for j := range out {
		if j == 0 {
			out[j] = promptRow(s.Prompt)
		} else {
			out[j] = int(s.Tokens[j-1])
		}
	}
	return out
}

func promptRow(prompt []int32) int {
	h := fnv.New32a()
	for _, t := range prompt {
		h.Write([]byte{byte(t)})
	}
	return tokens + int(h.Sum32()%promptRows)
}

// logSoftmax returns the log-probs of a row of the table, in nats.
func logSoftmax(weights []float64, row int, temperature float64) []float64 {
	logits := weights[row*tokens : (row+1)*tokens]
	top := slices.Max(logits)
	sum := 0.0
	for _, l := range logits {
		sum += math.Exp((l - top) / temperature)
	}
	out := make([]float64, tokens)
	for i, l := range logits {
		out[i] = (l-top)/temperature - math.Log(sum)
	}
	return out
}

// draw inverts the cumulative distribution at u.
func draw(logProbs []float64, u float64) int32 {
	for i, l := range logProbs {
		if u -= math.Exp(l); u < 0 {
			return int32(i)
		}
	}
	return endToken
}
