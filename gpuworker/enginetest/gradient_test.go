package enginetest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"codea1/gpuworker"
)

// TestBigramGradient compares the gradient with central differences of the
// loss, along random directions and in every branch of the loss.
func TestBigramGradient(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 9))
		b := NewBigram(seed)
		var sequences []gpuworker.Sequence
		for range 12 {
			s := gpuworker.Sequence{Prompt: []int32{rng.Int32N(int32(tokens))}, Advantage: 2 * rng.NormFloat64()}
			for range 5 {
				s.Tokens = append(s.Tokens, rng.Int32N(int32(tokens)))
			}
			now, err := b.LogProbs(t.Context(), gpuworker.Current, []gpuworker.Sequence{s}, 0.8)
			noError(t, "log-probs", err)
			for _, p := range now[0] {
				// Ratios from far below the lower to far above the dual clip.
				s.OldProbs = append(s.OldProbs, p+float32(1.5*rng.NormFloat64()))
				s.RefProbs = append(s.RefProbs, p+float32(rng.NormFloat64()))
			}
			sequences = append(sequences, s)
		}
		for _, loss := range []gpuworker.Loss{gpuworker.LossPPO, gpuworker.LossSFT} {
			config := gpuworker.UpdateConfig{
				Loss: loss, ClipLow: 0.2, ClipHigh: 0.28, DualClip: 3, LogRatioClamp: 20, KLCoef: 0.1, Temperature: 0.8,
				// With these, a step of AdamW is the gradient itself.
				LearningRate: 1e9, Epsilon: 1e9,
			}
			lossAt := func(weights []float64) float64 {
				probe := &Bigram{weights: slices.Clone(weights), moments: make([]float64, 2*parameters)}
				stats, err := probe.Update(t.Context(), sequences, config)
				noError(t, "update", err)
				return stats.Loss
			}
			stepped := &Bigram{weights: slices.Clone(b.weights), moments: make([]float64, 2*parameters)}
			_, err := stepped.Update(t.Context(), sequences, config)
			noError(t, "update", err)

			const h = 1e-6
			up, down := slices.Clone(b.weights), slices.Clone(b.weights)
			want := 0.0
			for i := range b.weights {
				direction := rng.NormFloat64()
				up[i] += h * direction
				down[i] -= h * direction
				want += (b.weights[i] - stepped.weights[i]) * direction
			}
			got := (lossAt(up) - lossAt(down)) / (2 * h)
			if math.Abs(got-want) > 1e-5*(1+math.Abs(want)) {
				t.Errorf("seed %d, loss %d: central difference %v, gradient %v", seed, loss, got, want)
			}
		}
	}
}
