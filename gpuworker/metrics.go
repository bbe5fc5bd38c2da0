package gpuworker

import (
	"time"

	"codea1/events"
	"codea1/gpuworker/checkpoint"
)

// metricsMean averages the statistics of a version's optimizer steps, weighted
// by response tokens.
type metricsMean struct {
	sum  UpdateStats // sums of mean times tokens; Tokens is the sum of the tokens
	rate float64     // learning rate of the last optimizer step

	mismatch *events.Mismatch // of the whole step; nil if it was not measured
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
	m.rate = rate
}

func (m *metricsMean) record(l *lesson, optimizerSteps int, took time.Duration) checkpoint.Metrics {
	w := float64(max(m.sum.Tokens, 1)) // 0 without an optimizer step
	return checkpoint.Metrics{
		Loss: m.sum.Loss / w, KL: m.sum.KL / w, ClipFraction: m.sum.ClipFraction / w,
		RatioMean: m.sum.RatioMean / w, Entropy: m.sum.Entropy / w, GradNorm: m.sum.GradNorm / w,
		LearningRate: m.rate, RewardMean: l.rewards / float64(max(l.sequences, 1)), Sequences: l.sequences, Tokens: m.sum.Tokens,
		Optimizer: optimizerSteps, Seconds: took.Seconds(), Mismatch: m.mismatch,
	}
}
