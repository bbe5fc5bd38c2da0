package gpuworker

import (
	"context"
	"errors"
	"fmt"
	"math"

	"codea1/events"
)

// Values of the setting old-log-probs.
const (
	OldSampled    = "sampled"
	OldRecomputed = "recomputed"
)

// recompute replaces the log-probs that were recorded when the responses were
// sampled by those of the weights before the update, and weights every token by
// min(p_trainer/p_sampler, cap): truncated importance sampling (Ionides 2008). The
// clip of PPO then bounds the step from the current weights, and the weight
// corrects for the policy that sampled. A cap of 0 leaves the weights out.
func (t *Trainer) recompute(ctx context.Context, l *lesson) (*events.Mismatch, error) {
	limit, clamp := t.config.Hyper.ImportanceCap, t.config.Hyper.Update.LogRatioClamp
	var sums events.Mismatch
	tokens := 0
	for b := range l.batches {
		trainer, err := t.config.Learner.LogProbs(ctx, Current, l.batches[b].all(), l.temperature)
		if errors.Is(err, ErrBadRequest) {
			if trainer, err = nil, t.leaveOut(ctx, l, b, err); err == nil && len(l.batches[b]) > 0 {
				trainer, err = t.config.Learner.LogProbs(ctx, Current, l.batches[b].all(), l.temperature)
			}
		}
		sequences := l.batches[b].refer()
		if err == nil && len(trainer) != len(sequences) {
			err = fmt.Errorf("%d results for %d sequences", len(trainer), len(sequences))
		}
		if err != nil {
			return nil, engineError("old log-probs", err)
		}
		for i, s := range sequences {
			if len(trainer[i]) != len(s.OldProbs) {
				return nil, engineError("old log-probs", fmt.Errorf("sequence %d: %d results for %d tokens", i, len(trainer[i]), len(s.OldProbs)))
			}
			if limit > 0 {
				s.Weights = make([]float32, len(s.OldProbs))
			}
			for j, p := range trainer[i] {
				d := float64(p) - float64(s.OldProbs[j])
				near := min(max(d, -clamp), clamp)
				weight := math.Exp(near)
				sums.MeanAbs += math.Abs(d)
				sums.Max = max(sums.Max, math.Abs(d))
				sums.KL += weight - near - 1
				if limit > 0 {
					if weight > limit {
						sums.Truncated++
					}
					s.Weights[j] = float32(min(weight, limit))
				}
			}
			tokens += len(s.OldProbs)
			s.OldProbs = trainer[i]
		}
	}
	if tokens == 0 {
		return nil, nil
	}
	sums.MeanAbs /= float64(tokens)
	sums.KL /= float64(tokens)
	sums.Truncated /= float64(tokens)
	if math.IsNaN(sums.MeanAbs) || math.IsInf(sums.MeanAbs, 0) {
		return nil, fmt.Errorf("%w: mean difference of the log-probs of trainer and sampler is %v", ErrDiverged, sums.MeanAbs)
	}
	return &sums, nil
}
