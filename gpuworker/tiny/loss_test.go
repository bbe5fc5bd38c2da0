package tiny

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"codea1/gpuworker"
	"codea1/gpuworker/tiny/qwen2"
)

// The expected values are computed by hand from the formulas of the design.
func TestSurrogate(t *testing.T) {
	ln := math.Log
	for _, c := range []struct {
		name                string
		advantage, logRatio float64
		loss, slope         float64
		clipped             float64
	}{
		{"on policy", 2, 0, -2, -2, 0},
		{"good, more likely", 2, ln(1.2), -2.4, -2.4, 0},
		{"good, above the upper bound", 2, ln(1.5), -2.56, 0, 1},
		{"good, less likely", 2, ln(0.5), -1, -1, 0},
		{"bad, more likely", -1, ln(1.5), 1.5, 1.5, 0},
		{"bad, below the lower bound", -1, ln(0.5), 0.8, 0, 1},
		{"bad, far more likely", -1, ln(12), 10, 0, 1},
		{"no advantage", 0, ln(12), 0, 0, 0},
		{"clamped", 1, 50, -1.28, 0, 1},
		{"clamped from below", 1, -50, -math.Exp(-20), 0, 0},
	} {
		got, slope := surrogate(ppo, c.advantage, c.logRatio)
		if math.Abs(got.loss-c.loss) > 1e-12 || math.Abs(slope-c.slope) > 1e-12 || got.clipped != c.clipped {
			t.Errorf("%s: loss %g, slope %g, clipped %g; want %g, %g, %g", c.name, got.loss, slope, got.clipped, c.loss, c.slope, c.clipped)
		}
	}
}

func TestTokenLossSlopes(t *testing.T) {
	const step = 1e-6
	for _, config := range []gpuworker.UpdateConfig{ppo, {Loss: gpuworker.LossSFT}} {
		config.KLCoef *= 200 // so that its slope matters
		for _, advantage := range []float64{1.5, -0.7, 0} {
			for logProb := -7.03; logProb < 0; logProb += 0.1 {
				s := gpuworker.Sequence{OldProbs: []float32{-3}, RefProbs: []float32{-2}, Advantage: advantage}
				_, slope := tokenLoss(config, s, 0, logProb)
				up, _ := tokenLoss(config, s, 0, logProb+step)
				down, _ := tokenLoss(config, s, 0, logProb-step)
				if want := (up.loss - down.loss) / (2 * step); math.Abs(slope-want) > 1e-5*(1+math.Abs(want)) {
					t.Errorf("loss %d, advantage %g, log-prob %.2f: slope %g, want %g", config.Loss, advantage, logProb, slope, want)
				}
			}
		}
	}
}

// lossOf returns the loss of an Update, computed with the forward pass only.
func lossOf(t *testing.T, e *Engine, sequences []gpuworker.Sequence, config gpuworker.UpdateConfig) float64 {
	t.Helper()
	e.current.net.Pack()
	scored, err := e.LogProbs(t.Context(), gpuworker.Current, sequences, config.Temperature)
	if err != nil {
		t.Fatal(err)
	}
	sum, tokens := 0.0, 0
	for i, row := range scored {
		for j, p := range row {
			l, _ := tokenLoss(config, sequences[i], j, float64(p))
			sum += l.loss
			tokens++
		}
	}
	return sum / float64(tokens)
}

// The test checks the gradient of the whole loss for each tensor: in the direction
// of the gradient, the slope of the loss is the gradient's length. The tests of
// package qwen2 compare single entries with float64.
func TestGradientOfBothLosses(t *testing.T) {
	small := shape
	small.Hidden, small.HeadSize, small.MLP, small.TieEmbeddings = 16, 4, 24, false
	for _, loss := range []gpuworker.Loss{gpuworker.LossPPO, gpuworker.LossSFT} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			e := newTestEngine(t, small, 4)
			config := ppo
			config.Loss, config.Temperature, config.KLCoef = loss, 1.2, 0.1
			if loss == gpuworker.LossSFT {
				config.Temperature = 1
			}
			sequences := rollouts(t, e)
			clipped := 0.0
			for i := range sequences { // off policy by different amounts, so that every branch is used
				for j := range sequences[i].OldProbs {
					sequences[i].OldProbs[j] += 0.1 * float32((i+j)%9-4)
				}
				sequences[i].RefProbs = slices.Repeat([]float32{-4}, len(sequences[i].Tokens))
				sequences[i].Weights = make([]float32, len(sequences[i].Tokens))
				for j := range sequences[i].Weights {
					sequences[i].Weights[j] = 0.5 + 0.25*float32((2*i+j)%5)
				}
			}
			e.current.net.PackBackward()
			e.gradients = make([]*qwen2.Weights, gradientShards)
			gradient, sums, tokens, err := e.gradient(t.Context(), sequences, config)
			if err != nil {
				t.Fatal(err)
			}
			clipped = sums.clipped / float64(tokens)
			if got := lossOf(t, e, sequences, config); math.Abs(got-sums.loss/float64(tokens)) > 1e-5 {
				t.Errorf("loss %g, from the forward pass %g", sums.loss/float64(tokens), got)
			}
			if loss == gpuworker.LossPPO && !(clipped > 0.1 && clipped < 0.9) {
				t.Errorf("%.2f of the tokens are clipped", clipped)
			}
			for i, g := range gradient.Tensors {
				length := 0.0
				for _, v := range g.Data {
					length += float64(v) * float64(v)
				}
				length = math.Sqrt(length)
				const step = 2e-3
				w := e.current.net.Weights.Tensors[i].Data
				kept := slices.Clone(w)
				along := func(by float64) float64 {
					for j := range w {
						w[j] = kept[j] + float32(by*float64(g.Data[j])/length)
					}
					return lossOf(t, e, sequences, config)
				}
				slope := (along(step) - along(-step)) / (2 * step)
				copy(w, kept)
				if math.Abs(slope-length) > 0.02*length+1e-3 {
					t.Errorf("%s: the loss rises by %.5f, the gradient's length is %.5f", g.Name, slope, length)
				}
			}
		})
	}
}
