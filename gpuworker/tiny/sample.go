package tiny

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"codea1/events"
	"codea1/gpuworker"
	"codea1/gpuworker/tiny/qwen2"
)

// Sample implements gpuworker.Sampler.
func (e *Engine) Sample(ctx context.Context, requests []gpuworker.SampleRequest, params gpuworker.SamplingParams) ([][]events.Completion, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	config := e.current.net.Weights.Config
	if err := checkParams(params); err != nil {
		return nil, err
	}
	var all []*sequence
	for i, r := range requests {
		if err := checkTokens("prompt", r.Prompt, config); err != nil {
			return nil, fmt.Errorf("request %d: %w", i, err)
		}
		if len(r.Prompt)+params.MaxTokens > config.Positions {
			return nil, fmt.Errorf("request %d: %w: %w: %d tokens and %d new ones exceed its %d positions",
				i, ErrBadRequest, gpuworker.ErrPromptTooLong, len(r.Prompt), params.MaxTokens, config.Positions)
		}
		for _, seed := range r.Seeds {
			all = append(all, &sequence{request: i, prompt: r.Prompt, rng: rand.New(rand.NewPCG(seed, seedStream))})
		}
	}
	shards := min(e.threads, len(all))
	err := parallel(ctx, shards, shards, func(ctx context.Context, i int) error {
		mine := all[i*len(all)/shards : (i+1)*len(all)/shards]
		return e.newDecoding(params, min(e.slots, len(mine))).run(ctx, mine)
	})
	if err != nil {
		return nil, err
	}
	out := make([][]events.Completion, len(requests))
	for _, s := range all {
		out[s.request] = append(out[s.request], e.completion(s))
	}
	return out, nil
}

// seedStream makes sampling independent of other uses of the same seeds.
const seedStream = 0x636f6465613173

func checkParams(p gpuworker.SamplingParams) error {
	switch {
	case !(p.Temperature > 0 && p.Temperature <= 1e6):
		return fmt.Errorf("%w: temperature %g is not above 0", ErrBadRequest, p.Temperature)
	case !(p.TopP > 0 && p.TopP <= 1):
		return fmt.Errorf("%w: top-p %g is outside (0, 1]", ErrBadRequest, p.TopP)
	case p.TopK < 0:
		return fmt.Errorf("%w: top-k %d is negative", ErrBadRequest, p.TopK)
	case p.MaxTokens < 1:
		return fmt.Errorf("%w: max tokens is %d, want 1 or more", ErrBadRequest, p.MaxTokens)
	}
	return nil
}

// checkTokens returns an error for an empty list or an id outside the
// vocabulary.
func checkTokens(what string, ids []int32, config qwen2.Config) error {
	if len(ids) == 0 {
		return fmt.Errorf("%w: empty %s", ErrBadRequest, what)
	}
	for _, id := range ids {
		if id < 0 || int(id) >= config.Vocabulary {
			return fmt.Errorf("%w: token %d of the %s is outside the vocabulary of %d", ErrBadRequest, id, what, config.Vocabulary)
		}
	}
	return nil
}

// completion decodes a finished sequence. Its text is valid UTF-8 even if the
// last token ends inside a rune.
func (e *Engine) completion(s *sequence) events.Completion {
	c := events.Completion{Tokens: s.tokens, LogProbs: s.logProbs, Finish: events.FinishLength}
	text := s.tokens
	if s.ended {
		c.Finish = events.FinishStop
		text = text[:len(text)-1]
	}
	c.Text = strings.ToValidUTF8(e.tokenizer.Decode(text), "\uFFFD")
	return c
}
