package torch

import (
	"context"
	"fmt"

	"codea1/gpuworker"
)

// LogProbs implements gpuworker.Learner.
func (e *Engine) LogProbs(ctx context.Context, policy gpuworker.Policy, sequences []gpuworker.Sequence, temperature float64) ([][]float32, error) {
	fields := sequenceFields(sequences)
	fields["temperature"], fields["policy"] = temperature, "current"
	if policy == gpuworker.Reference {
		fields["policy"] = "reference"
	}
	a, err := e.call(ctx, training, opLogProbs, fields)
	if err != nil {
		return nil, err
	}
	lengths := make([]int32, len(sequences))
	for i := range sequences {
		lengths[i] = int32(len(sequences[i].Tokens))
	}
	return unpackLists[float32]("log_probs", lengths, a.LogProbs)
}

// Update implements gpuworker.Learner.
func (e *Engine) Update(ctx context.Context, sequences []gpuworker.Sequence, config gpuworker.UpdateConfig) (gpuworker.UpdateStats, error) {
	fields := sequenceFields(sequences)
	switch config.Loss {
	case gpuworker.LossPPO:
		fields["loss"] = "ppo"
	case gpuworker.LossSFT:
		fields["loss"] = "sft"
	default:
		return gpuworker.UpdateStats{}, fmt.Errorf("%w: loss %d", ErrBadRequest, config.Loss)
	}
	for name, value := range map[string]float64{
		"clip_low": config.ClipLow, "clip_high": config.ClipHigh, "dual_clip": config.DualClip, "log_ratio_clamp": config.LogRatioClamp,
		"kl_coef": config.KLCoef, "temperature": config.Temperature, "learning_rate": config.LearningRate, "weight_decay": config.WeightDecay,
		"beta1": config.Beta1, "beta2": config.Beta2, "epsilon": config.Epsilon, "grad_clip": config.GradClip,
	} {
		fields[name] = value
	}
	a, err := e.call(ctx, training, opUpdate, fields)
	if err != nil {
		return gpuworker.UpdateStats{}, err
	}
	return gpuworker.UpdateStats{
		Loss: a.Loss, KL: a.KL, ClipFraction: a.ClipFraction, RatioMean: a.RatioMean, Entropy: a.Entropy,
		GradNorm: a.GradNorm, Tokens: a.Trained,
	}, nil
}

// Save implements gpuworker.Learner.
func (e *Engine) Save(ctx context.Context, dir string) error {
	return e.onDirectory(ctx, training, opSave, dir)
}

// Load implements gpuworker.Learner.
func (e *Engine) Load(ctx context.Context, dir string) error {
	return e.onDirectory(ctx, training, opLoad, dir)
}

// LoadReference implements gpuworker.Learner.
func (e *Engine) LoadReference(ctx context.Context, dir string) error {
	return e.onDirectory(ctx, training, opLoadReference, dir)
}

// sequenceFields returns the fields of sequences. An absent list has the length 0.
func sequenceFields(sequences []gpuworker.Sequence) request {
	advantages := make([]float64, len(sequences))
	for i := range sequences {
		advantages[i] = sequences[i].Advantage
	}
	n := len(sequences)
	return request{
		"prompts":    packLists(n, func(i int) []int32 { return sequences[i].Prompt }),
		"tokens":     packLists(n, func(i int) []int32 { return sequences[i].Tokens }),
		"old_probs":  packLists(n, func(i int) []float32 { return sequences[i].OldProbs }),
		"ref_probs":  packLists(n, func(i int) []float32 { return sequences[i].RefProbs }),
		"weights":    packLists(n, func(i int) []float32 { return sequences[i].Weights }),
		"advantages": pack(advantages),
	}
}
