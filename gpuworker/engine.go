package gpuworker

import (
	"context"

	"codea1/events"
)

// Message is one turn of a chat prompt.
type Message struct {
	Role    string // "system", "user" or "assistant"
	Content string
}

// Sampler generates completions from one policy.
//
// A completion depends only on the weights, its prompt, its seed and the
// sampling parameters, not on the other requests of the call. A group that is
// sampled again after a crash therefore gives the same completions.
type Sampler interface {
	// EncodePrompt renders messages with the checkpoint's chat template and
	// adds the header of the assistant's turn. If the last message is the assistant's,
	// its turn stays open: the completion continues its text.
	EncodePrompt(messages []Message) ([]int32, error)
	// Sample returns one completion per seed of each request, in the order of
	// the seeds.
	Sample(ctx context.Context, requests []SampleRequest, params SamplingParams) ([][]events.Completion, error)
	// LoadWeights replaces the weights with those of a checkpoint directory that
	// has the same architecture and tokenizer.
	LoadWeights(ctx context.Context, dir string) error
	// Close frees the engine's resources.
	Close() error
}

// SampleRequest asks for len(Seeds) completions of one prompt. The engine
// prefills the prompt once.
type SampleRequest struct {
	Prompt   []int32   // token ids, from EncodePrompt
	Messages []Message // that were encoded; for a Sampler with an EncodePrompt that returns no tokens
	Seeds    []uint64  // one per completion
}

// SamplingParams are shared by all requests of one call.
type SamplingParams struct {
	Temperature float64 // > 0; log-probs are those of the tempered distribution
	TopP        float64 // (0, 1]; 1 keeps every token
	TopK        int     // 0 keeps every token
	MaxTokens   int     // per completion, with the end token
}

// Policy names one of the two sets of weights of a Learner.
type Policy int

const (
	// Current is the policy in training.
	Current Policy = iota
	// Reference is the frozen policy of the KL term.
	Reference
)

// Learner computes log-probs and takes optimizer steps.
//
// With the same kernels, the same checkpoint and the same sequence of calls give
// the same weights bit for bit.
type Learner interface {
	// LogProbs returns log p(token) in nats for each response token of each
	// sequence at the given temperature. The shape is
	// [len(sequences)][len(Tokens)].
	LogProbs(ctx context.Context, policy Policy, sequences []Sequence, temperature float64) ([][]float32, error)
	// Update computes the gradient of the loss over all sequences and takes one
	// AdamW step.
	Update(ctx context.Context, sequences []Sequence, config UpdateConfig) (UpdateStats, error)
	// Save writes weights, tokenizer, configuration and optimizer state into
	// dir, which exists and is empty. The caller flushes the files to disk and
	// renames dir afterwards.
	Save(ctx context.Context, dir string) error
	// Load reads a directory that Save wrote. If it has no optimizer state, as
	// a plain Hugging Face checkpoint, the optimizer starts fresh.
	Load(ctx context.Context, dir string) error
	// LoadReference loads the weights of the Reference policy.
	LoadReference(ctx context.Context, dir string) error
	// Close frees the engine's resources.
	Close() error
}

// Sequence is one training example: a prompt and a response.
type Sequence struct {
	Prompt    []int32
	Tokens    []int32   // response token ids; the loss covers only these
	OldProbs  []float32 // log-probs of the policy before the update; len(Tokens); unused by LossSFT
	RefProbs  []float32 // reference log-probs; len(Tokens), or nil when KLCoef is 0
	Weights   []float32 // of each token in the clipped surrogate; len(Tokens), or nil for 1 each; unused by LossSFT
	Advantage float64   // of the whole response; unused by LossSFT
}

// Loss selects the objective of an Update.
type Loss int

const (
	// LossPPO is the clipped surrogate of design step 10: asymmetric clip,
	// dual clip, log-ratio clamp, low-variance (k3) KL, token mean.
	LossPPO Loss = iota
	// LossSFT is the token-mean cross-entropy of the responses.
	LossSFT
)

// UpdateConfig holds the hyper-parameters of one optimizer step.
type UpdateConfig struct {
	Loss          Loss
	ClipLow       float64 // lower clip of the ratio: 1 - ClipLow
	ClipHigh      float64 // upper clip of the ratio: 1 + ClipHigh
	DualClip      float64 // c: for a negative advantage A the loss is at most -c*A; 0 disables it
	LogRatioClamp float64 // the log-ratio is clamped to +-LogRatioClamp before exp
	KLCoef        float64 // weight of the KL divergence to the reference
	Temperature   float64 // at which the responses were sampled
	LearningRate  float64 // after the schedule
	WeightDecay   float64 // decoupled (AdamW), on matrices only
	Beta1, Beta2  float64
	Epsilon       float64
	GradClip      float64 // largest global norm of the gradient; 0 disables it
}

// UpdateStats reports one optimizer step; means are over response tokens.
type UpdateStats struct {
	Loss         float64
	KL           float64 // k3 estimate to the reference; 0 without one
	ClipFraction float64 // share of tokens whose ratio was clipped
	RatioMean    float64
	Entropy      float64 // nats, of the tempered distribution at the response positions
	GradNorm     float64 // before clipping
	Tokens       int
}
