package enginetest

import (
	"context"
	"errors"
	"math"

	"codea1/gpuworker"
)

// Update implements gpuworker.Learner: the loss of design step 10 and one AdamW
// step.
func (b *Bigram) Update(ctx context.Context, sequences []gpuworker.Sequence, config gpuworker.UpdateConfig) (gpuworker.UpdateStats, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var stats gpuworker.UpdateStats
	for i := range sequences {
		stats.Tokens += len(sequences[i].Tokens)
	}
	if stats.Tokens == 0 {
		return stats, errors.New("bigram: no response tokens to learn from")
	}
	share := 1 / float64(stats.Tokens) // token mean
	gradient := make([]float64, parameters)
	for i := range sequences {
		if err := ctx.Err(); err != nil {
			return stats, err
		}
		s := &sequences[i]
		for j, row := range rowsOf(s) {
			logProbs := logSoftmax(b.weights, row, config.Temperature)
			term := lossTerm(s, j, logProbs[s.Tokens[j]], &config)
			stats.Loss += share * term.loss
			stats.KL += share * term.kl
			stats.RatioMean += share * term.ratio
			if term.clipped {
				stats.ClipFraction += share
			}
			for k, l := range logProbs {
				p := math.Exp(l)
				stats.Entropy -= share * p * l
				onehot := 0.0
				if int32(k) == s.Tokens[j] {
					onehot = 1
				}
				// d log p(token) / d logit k = (1[k = token] - p_k) / T
				gradient[row*tokens+k] += share * term.slope * (onehot - p) / config.Temperature
			}
		}
	}
	stats.GradNorm = norm(gradient)
	if config.GradClip > 0 && stats.GradNorm > config.GradClip {
		for i := range gradient {
			gradient[i] *= config.GradClip / stats.GradNorm
		}
	}
	b.adamW(gradient, &config)
	return stats, nil
}

// lossOf is one token's loss and its derivative by the token's log-prob.
type lossOf struct {
	loss, slope, kl, ratio float64
	clipped                bool
}

func lossTerm(s *gpuworker.Sequence, j int, logProb float64, config *gpuworker.UpdateConfig) lossOf {
	if config.Loss == gpuworker.LossSFT {
		return lossOf{loss: -logProb, slope: -1, ratio: 1}
	}
	clamp := func(x float64) float64 { return max(-config.LogRatioClamp, min(config.LogRatioClamp, x)) }
	logRatio := logProb - float64(s.OldProbs[j])
	t := lossOf{ratio: math.Exp(clamp(logRatio))}
	inClamp := clamp(logRatio) == logRatio
	a := s.Advantage
	t.loss = -a * t.ratio
	if bounded := -a * max(1-config.ClipLow, min(1+config.ClipHigh, t.ratio)); bounded > t.loss {
		t.loss, t.clipped = bounded, true
	}
	if a < 0 && config.DualClip > 0 && t.loss > -config.DualClip*a {
		t.loss, t.clipped = -config.DualClip*a, true
	}
	if !t.clipped && inClamp {
		t.slope = -a * t.ratio
	}
	if s.RefProbs != nil && config.KLCoef > 0 {
		// k3: exp(d) - d - 1 with d = reference - current
		d := float64(s.RefProbs[j]) - logProb
		e := math.Exp(clamp(d))
		t.kl = e - clamp(d) - 1
		t.loss += config.KLCoef * t.kl
		if clamp(d) == d {
			t.slope += config.KLCoef * (1 - e)
		}
	}
	return t
}

// adamW takes one step with decoupled weight decay.
func (b *Bigram) adamW(gradient []float64, config *gpuworker.UpdateConfig) {
	b.steps++
	first, second := b.moments[:parameters], b.moments[parameters:]
	correct1 := 1 - math.Pow(config.Beta1, float64(b.steps))
	correct2 := 1 - math.Pow(config.Beta2, float64(b.steps))
	for i, g := range gradient {
		first[i] = config.Beta1*first[i] + (1-config.Beta1)*g
		second[i] = config.Beta2*second[i] + (1-config.Beta2)*g*g
		step := first[i] / correct1 / (math.Sqrt(second[i]/correct2) + config.Epsilon)
		b.weights[i] -= config.LearningRate * (step + config.WeightDecay*b.weights[i])
	}
}

func norm(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}
