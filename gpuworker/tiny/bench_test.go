package tiny

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"codea1/gpuworker"
)

// BenchmarkSample is the Test LLM's part of a default step: 128 suites of 64
// tokens, 4 to a prompt of 120.
func BenchmarkSample(b *testing.B) {
	config := defaultShape
	config.Vocabulary = 1024
	e := newTestEngine(b, config, 1)
	rng := rand.New(rand.NewPCG(1, 1))
	var r []gpuworker.SampleRequest
	for i := range 32 {
		request := gpuworker.SampleRequest{Prompt: make([]int32, 120)}
		for j := range request.Prompt {
			request.Prompt[j] = int32(rng.IntN(1024))
		}
		for j := range 4 {
			request.Seeds = append(request.Seeds, uint64(4*i+j))
		}
		r = append(r, request)
	}
	tokens := 0
	for b.Loop() {
		for _, row := range sample(b, e, r, gpuworker.SamplingParams{Temperature: 1, TopP: 1, MaxTokens: 64}) {
			for _, c := range row {
				tokens += len(c.Tokens)
			}
		}
	}
	b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tokens/s")
}

func randomSequences(groups, each, prompt, response int) []gpuworker.Sequence {
	rng := rand.New(rand.NewPCG(1, 1))
	draw := func(n int) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = int32(rng.IntN(1024))
		}
		return out
	}
	var out []gpuworker.Sequence
	for range groups {
		p := draw(prompt)
		for range each {
			s := gpuworker.Sequence{Prompt: p, Tokens: draw(response), Advantage: 1}
			s.OldProbs = slices.Repeat([]float32{-6.9}, response)
			s.RefProbs = s.OldProbs
			out = append(out, s)
		}
	}
	return out
}

// Tokens count prompts and responses, each prompt once per response.
func BenchmarkUpdate(b *testing.B) {
	config := defaultShape
	config.Vocabulary = 1024
	for _, c := range []struct {
		name      string
		loss      gpuworker.Loss
		sequences []gpuworker.Sequence
	}{
		{"sft", gpuworker.LossSFT, randomSequences(32, 1, 80, 48)},
		{"ppo", gpuworker.LossPPO, randomSequences(4, 8, 80, 48)},
	} {
		b.Run(c.name, func(b *testing.B) {
			e := newTestEngine(b, config, 1)
			update := ppo
			update.Loss = c.loss
			for b.Loop() {
				if _, err := e.Update(context.Background(), c.sequences, update); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(c.sequences)*(80+48)*b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
