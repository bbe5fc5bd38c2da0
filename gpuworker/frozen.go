package gpuworker

import (
	"context"

	"codea1/events"
)

// Frozen samples from a policy that is never trained. It is a RolloutPolicy of version
// 0. The Sampler must be safe for concurrent use.
type Frozen struct{ Sampler Sampler }

// Version returns 0.
func (Frozen) Version() int { return 0 }

// WaitVersion waits for ctx if another version than 0 is wanted.
func (Frozen) WaitVersion(ctx context.Context, least int) error {
	if least > 0 {
		<-ctx.Done()
	}
	return ctx.Err()
}

// EncodePrompt calls Sampler.EncodePrompt.
func (f Frozen) EncodePrompt(_ context.Context, messages []Message) ([]int32, error) {
	tokens, err := f.Sampler.EncodePrompt(messages)
	return tokens, engineError("encode prompt", err)
}

// Sample calls Sampler.Sample.
func (f Frozen) Sample(ctx context.Context, requests []SampleRequest, params SamplingParams) ([][]events.Completion, int, error) {
	completions, err := f.Sampler.Sample(ctx, requests, params)
	if err == nil {
		err = checkCompletions(requests, completions)
	}
	return completions, 0, engineError("sample", err)
}
