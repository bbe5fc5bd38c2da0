package tiny

import (
	"context"
	"fmt"

	"codea1/gpuworker"
	"codea1/gpuworker/tiny/kernel"
	"codea1/gpuworker/tiny/qwen2"
)

// LogProbs implements gpuworker.Learner.
func (e *Engine) LogProbs(ctx context.Context, policy gpuworker.Policy, sequences []gpuworker.Sequence, temperature float64) ([][]float32, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	m := e.current
	if policy == gpuworker.Reference {
		m = e.reference
	}
	switch {
	case m == nil:
		return nil, ErrNoReference
	case !(temperature > 0):
		return nil, fmt.Errorf("%w: temperature %g is not above 0", ErrBadRequest, temperature)
	}
	if err := checkSequences(sequences, m.net.Weights.Config); err != nil {
		return nil, err
	}
	out := make([][]float32, len(sequences))
	for i, s := range sequences {
		out[i] = make([]float32, len(s.Tokens))
	}
	units := makeUnits(sequences)
	err := parallel(ctx, e.threads, len(units), func(_ context.Context, i int) error {
		pass := m.takePass()
		defer m.returnPass(pass)
		u := units[i]
		pass.LogProbs(u.group, temperature, func(s qwen2.Score) {
			out[u.indices[s.Response]][s.Token] = float32(s.LogProb)
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Update implements gpuworker.Learner. LossSFT trains at temperature 1. If Update
// returns an error, weights and optimizer are unchanged.
func (e *Engine) Update(ctx context.Context, sequences []gpuworker.Sequence, config gpuworker.UpdateConfig) (gpuworker.UpdateStats, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	net := e.current.net
	if config.Loss == gpuworker.LossSFT {
		config.Temperature = 1
	}
	if err := checkSequences(sequences, net.Weights.Config); err != nil {
		return gpuworker.UpdateStats{}, err
	}
	if err := checkUpdate(sequences, config); err != nil {
		return gpuworker.UpdateStats{}, err
	}
	if e.optimizer == nil {
		e.optimizer = newOptimizer(net.Weights.Config)
	}
	if e.gradients == nil {
		e.gradients = make([]*qwen2.Weights, gradientShards)
	}
	net.PackBackward()
	gradient, sum, tokens, err := e.gradient(ctx, sequences, config)
	if err != nil {
		return gpuworker.UpdateStats{}, err
	}
	gradNorm, err := norm(ctx, e.threads, gradient)
	if err != nil {
		return gpuworker.UpdateStats{}, err
	}
	if err := e.optimizer.apply(e.threads, net.Weights, gradient, gradNorm, config); err != nil {
		return gpuworker.UpdateStats{}, err
	}
	net.Pack()
	n := float64(tokens)
	return gpuworker.UpdateStats{
		Loss: sum.loss / n, KL: sum.kl / n, ClipFraction: sum.clipped / n, RatioMean: sum.ratio / n, Entropy: sum.entropy / n,
		GradNorm: gradNorm, Tokens: tokens,
	}, nil
}

func checkUpdate(sequences []gpuworker.Sequence, config gpuworker.UpdateConfig) error {
	tokens := 0
	for i, s := range sequences {
		tokens += len(s.Tokens)
		if config.Loss == gpuworker.LossSFT {
			continue
		}
		if len(s.OldProbs) != len(s.Tokens) {
			return fmt.Errorf("sequence %d: %w: %d old log-probs for %d tokens", i, ErrBadRequest, len(s.OldProbs), len(s.Tokens))
		}
		if len(s.RefProbs) != len(s.Tokens) && (s.RefProbs != nil || config.KLCoef != 0) {
			return fmt.Errorf("sequence %d: %w: %d reference log-probs for %d tokens", i, ErrBadRequest, len(s.RefProbs), len(s.Tokens))
		}
		if s.Weights != nil && len(s.Weights) != len(s.Tokens) {
			return fmt.Errorf("sequence %d: %w: %d weights for %d tokens", i, ErrBadRequest, len(s.Weights), len(s.Tokens))
		}
		if s.Advantage-s.Advantage != 0 {
			return fmt.Errorf("sequence %d: %w: advantage %g", i, ErrBadRequest, s.Advantage)
		}
	}
	switch {
	case tokens == 0:
		return fmt.Errorf("%w: the update has no response tokens", ErrBadRequest)
	case !(config.Temperature > 0):
		return fmt.Errorf("%w: temperature %g is not above 0", ErrBadRequest, config.Temperature)
	case config.Loss == gpuworker.LossPPO && !(config.LogRatioClamp > 0):
		return fmt.Errorf("%w: log-ratio clamp %g is not above 0", ErrBadRequest, config.LogRatioClamp)
	}
	return nil
}

// gradient returns the gradient of the mean loss over all response tokens, the
// sums of the statistics, and the number of tokens. The caller holds the lock and
// has called PackBackward.
func (e *Engine) gradient(ctx context.Context, sequences []gpuworker.Sequence, config gpuworker.UpdateConfig) (*qwen2.Weights, tally, int, error) {
	tokens := 0
	for _, s := range sequences {
		tokens += len(s.Tokens)
	}
	shards := shard(makeUnits(sequences))
	tallies := make([]tally, len(shards))
	err := parallel(ctx, e.threads, len(shards), func(ctx context.Context, i int) error {
		if e.gradients[i] == nil {
			e.gradients[i] = qwen2.NewWeights(e.current.net.Weights.Config)
		}
		clear(e.gradients[i].Data)
		pass := e.current.takePass()
		defer e.current.returnPass(pass)
		for _, u := range shards[i] {
			if err := ctx.Err(); err != nil {
				return err
			}
			pass.Backward(u.group, config.Temperature, e.gradients[i], func(s qwen2.Score) float64 {
				t, slope := tokenLoss(config, sequences[u.indices[s.Response]], s.Token, s.LogProb)
				t.entropy = s.Entropy
				tallies[i].add(t)
				return slope / float64(tokens)
			})
		}
		return nil
	})
	if err != nil {
		return nil, tally{}, 0, err
	}
	total := e.gradients[0]
	err = blocks(ctx, e.threads, len(total.Data), func(lo, hi int) {
		for _, part := range e.gradients[1:len(shards)] {
			kernel.Axpy(1, part.Data[lo:hi], total.Data[lo:hi])
		}
	})
	var sum tally
	for _, t := range tallies {
		sum.add(t)
	}
	return total, sum, tokens, err
}
