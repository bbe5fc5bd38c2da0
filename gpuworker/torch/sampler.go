package torch

import (
	"context"
	"fmt"
	"math"
	"path/filepath"

	"codea1/events"
	"codea1/gpuworker"
)

// EncodePrompt implements gpuworker.Sampler.
func (e *Engine) EncodePrompt(messages []gpuworker.Message) ([]int32, error) {
	roles, contents := make([]string, len(messages)), make([]string, len(messages))
	for i, m := range messages {
		roles[i], contents[i] = m.Role, m.Content
	}
	a, err := e.call(context.Background(), sampling, opEncode, request{"roles": roles, "contents": contents})
	if err != nil {
		return nil, err
	}
	return unpack[int32]("prompt", a.Prompt)
}

// Sample implements gpuworker.Sampler.
func (e *Engine) Sample(ctx context.Context, requests []gpuworker.SampleRequest, params gpuworker.SamplingParams) ([][]events.Completion, error) {
	a, err := e.call(ctx, sampling, opSample, request{
		"prompts":     packLists(len(requests), func(i int) []int32 { return requests[i].Prompt }),
		"seeds":       packLists(len(requests), func(i int) []uint64 { return requests[i].Seeds }),
		"temperature": params.Temperature, "top_p": params.TopP, "top_k": params.TopK, "max_tokens": params.MaxTokens,
	})
	if err != nil {
		return nil, err
	}
	completions, err := a.completions()
	if err != nil {
		return nil, err
	}
	counts := make([]int32, len(requests))
	for i := range requests {
		counts[i] = int32(len(requests[i].Seeds))
	}
	return split("texts", counts, completions)
}

// completions returns the completions of an answer to sample.
func (a *answer) completions() ([]events.Completion, error) {
	lengths, err := unpack[int32]("tokens.n", a.Tokens.Lengths)
	if err != nil {
		return nil, err
	}
	tokens, err := unpackLists[int32]("tokens", lengths, a.Tokens.Values)
	if err != nil {
		return nil, err
	}
	logProbs, err := unpackLists[float32]("log_probs", lengths, a.LogProbs)
	if err != nil {
		return nil, err
	}
	if len(a.Stopped) != len(tokens) || len(a.Texts) != len(tokens) {
		return nil, fmt.Errorf("%w: %d texts and %d ends for %d completions", ErrProtocol, len(a.Texts), len(a.Stopped), len(tokens))
	}
	out := make([]events.Completion, len(tokens))
	for i := range out {
		for j, p := range logProbs[i] {
			if p-p != 0 {
				return nil, fmt.Errorf("%w: log-prob %g", gpuworker.ErrDiverged, p)
			}
			logProbs[i][j] = min(0, p)
		}
		out[i] = events.Completion{Tokens: tokens[i], LogProbs: logProbs[i], Text: a.Texts[i], Finish: events.FinishLength}
		if a.Stopped[i] != 0 {
			out[i].Finish = events.FinishStop
		}
	}
	return out, nil
}

// LoadWeights implements gpuworker.Sampler. It keeps the weights in training: the
// sampler gets weights of its own unless the checkpoint is the one that the
// learner loaded or saved last.
func (e *Engine) LoadWeights(ctx context.Context, dir string) error {
	return e.onDirectory(ctx, sampling, opLoadWeights, dir)
}

// onDirectory calls an operation on a directory. The child may have another working
// directory, so the path is made absolute.
func (e *Engine) onDirectory(ctx context.Context, j job, op, dir string) error {
	dir, err := filepath.Abs(dir)
	if err == nil {
		_, err = e.call(ctx, j, op, request{"dir": dir})
	}
	return err
}

// unpackLists returns lists of numbers of known lengths.
func unpackLists[T number](name string, lengths []int32, blob []byte) ([][]T, error) {
	if len(blob) > math.MaxInt32 {
		return nil, fmt.Errorf("%w: field %s is too long", ErrProtocol, name)
	}
	values, err := unpack[T](name, blob)
	if err != nil {
		return nil, err
	}
	return split(name, lengths, values)
}
