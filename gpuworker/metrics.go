package gpuworker

import (
	"time"

	"codea1/gpuworker/checkpoint"
)

// metricsMean averages the statistics of a version's optimizer steps, each
// weighted by its response tokens.
type metricsMean struct {
	sum    UpdateStats // each mean times its tokens; Tokens is their sum
	rate   float64     // learning rate of the last optimizer step
	weight float64
}

func (m *metricsMean) add(s *UpdateStats, rate float64) {
	w := float64(s.Tokens)
	m.sum.Loss += w * s.Loss
	m.sum.KL += w * s.KL
	m.sum.ClipFraction += w * s.ClipFraction
	m.sum.RatioMean += w * s.RatioMean
	m.sum.Entropy += w * s.Entropy
	m.sum.GradNorm += w * s.GradNorm
	m.sum.Tokens += s.Tokens
	m.weight += w
	m.rate = rate
}

func (m *metricsMean) record(l *lesson, optimizerSteps int, took time.Duration) checkpoint.Metrics {
	w := max(m.weight, 1) // without an optimizer step all sums are 0
	return checkpoint.Metrics{
		Loss: m.sum.Loss / w, KL: m.sum.KL / w, ClipFraction: m.sum.ClipFraction / w,
		RatioMean: m.sum.RatioMean / w, Entropy: m.sum.Entropy / w, GradNorm: m.sum.GradNorm / w,
		LearningRate: m.rate, RewardMean: l.rewardMean, Sequences: l.sequences, Tokens: m.sum.Tokens,
		Optimizer: optimizerSteps, Seconds: took.Seconds(),
	}
}
