package tiny

import (
	"math"

	"codea1/gpuworker"
)

// tally sums the statistics of an Update over tokens.
type tally struct {
	loss, kl, clipped, ratio, entropy float64
}

func (t *tally) add(o tally) {
	t.loss += o.loss
	t.kl += o.kl
	t.clipped += o.clipped
	t.ratio += o.ratio
	t.entropy += o.entropy
}

// tokenLoss returns the loss of one token, before the mean over tokens, and its
// derivative by the token's log-prob.
func tokenLoss(config gpuworker.UpdateConfig, s gpuworker.Sequence, token int, logProb float64) (t tally, slope float64) {
	if config.Loss == gpuworker.LossSFT {
		return tally{loss: -logProb, ratio: 1}, -1
	}
	t, slope = surrogate(config, s.Advantage, logProb-float64(s.OldProbs[token]))
	if s.Weights != nil {
		t.loss *= float64(s.Weights[token])
		slope *= float64(s.Weights[token])
	}
	if s.RefProbs != nil {
		kl, klSlope := lowVarianceKL(config, float64(s.RefProbs[token])-logProb)
		t.kl = kl
		t.loss += config.KLCoef * kl
		slope += config.KLCoef * klSlope
	}
	return t, slope
}

// surrogate is PPO's clipped objective (Schulman et al. 2017) with different
// lower and upper bounds (DAPO) and a dual clip (Ye et al. 2020). With
// r = exp(log-ratio),
//
//	loss = max(-A*r, -A*clip(r, 1-ClipLow, 1+ClipHigh)), and for A < 0 at most -A*DualClip
//
// If a bound applies or the log-ratio is clamped, the slope is 0.
func surrogate(config gpuworker.UpdateConfig, advantage, logRatio float64) (t tally, slope float64) {
	clamped := clamp(logRatio, -config.LogRatioClamp, config.LogRatioClamp)
	ratio := math.Exp(clamped)
	bounded := clamp(ratio, 1-config.ClipLow, 1+config.ClipHigh)
	t = tally{loss: -advantage * ratio, ratio: ratio}
	if clamped == logRatio {
		slope = -advantage * ratio
	}
	if l := -advantage * bounded; l > t.loss {
		t.loss, t.clipped, slope = l, 1, 0
	}
	if l := -advantage * config.DualClip; advantage < 0 && config.DualClip > 0 && l < t.loss {
		t.loss, t.clipped, slope = l, 1, 0
	}
	return t, slope
}

// lowVarianceKL is Schulman's k3 estimate of the KL divergence to the
// reference, exp(d) - d - 1 with d = log p_ref - log p, and its slope by log p.
func lowVarianceKL(config gpuworker.UpdateConfig, d float64) (kl, slope float64) {
	clamped := clamp(d, -config.LogRatioClamp, config.LogRatioClamp)
	kl = math.Exp(clamped) - clamped - 1
	if clamped == d {
		slope = 1 - math.Exp(d)
	}
	return kl, slope
}

func clamp(x, lo, hi float64) float64 { return min(max(x, lo), hi) }
