package tiny

import (
	"context"
	"fmt"
	"math"

	"codea1/gpuworker"
	"codea1/gpuworker/tiny/kernel"
	"codea1/gpuworker/tiny/qwen2"
)

// optimizer is the state of AdamW.
type optimizer struct {
	mean, variance *qwen2.Weights // first and second moments
	step           int            // steps taken
}

func newOptimizer(c qwen2.Config) *optimizer {
	return &optimizer{mean: qwen2.NewWeights(c), variance: qwen2.NewWeights(c)}
}

// blockFloats is the number of parameters of a block. Goroutines share the work
// on all parameters by blocks. The blocks do not depend on the number of
// goroutines, so sums over them round in the same way.
const blockFloats = 1 << 14

// blocks calls do for each block of n elements.
func blocks(ctx context.Context, threads, n int, do func(lo, hi int)) error {
	return parallel(ctx, threads, (n+blockFloats-1)/blockFloats, func(_ context.Context, i int) error {
		do(i*blockFloats, min(n, (i+1)*blockFloats))
		return nil
	})
}

// norm returns the Euclidean norm of all gradients.
func norm(ctx context.Context, threads int, gradient *qwen2.Weights) (float64, error) {
	squares := make([]float64, (len(gradient.Data)+blockFloats-1)/blockFloats)
	err := blocks(ctx, threads, len(gradient.Data), func(lo, hi int) {
		g := gradient.Data[lo:hi]
		squares[lo/blockFloats] = float64(kernel.Dot(g, g))
	})
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, s := range squares {
		sum += s
	}
	norm := math.Sqrt(sum)
	if norm-norm != 0 {
		return 0, fmt.Errorf("gradient norm %g: %w", norm, ErrDiverged)
	}
	return norm, nil
}

// apply takes one AdamW step on weights with gradients clipped to the global norm
// config.GradClip. No context stops it, because a partial step would leave the
// weights inconsistent.
func (o *optimizer) apply(threads int, weights, gradient *qwen2.Weights, norm float64, config gpuworker.UpdateConfig) error {
	o.step++
	step := kernel.AdamWStep{
		LearningRate: config.LearningRate, Beta1: config.Beta1, Beta2: config.Beta2, Epsilon: config.Epsilon,
		GradScale: 1, Step: o.step,
	}
	if config.GradClip > 0 && norm > config.GradClip {
		step.GradScale = config.GradClip / norm
	}
	return parallel(context.Background(), threads, len(weights.Tensors), func(_ context.Context, i int) error {
		s, w := step, weights.Tensors[i]
		if w.Matrix() {
			s.WeightDecay = config.WeightDecay
		}
		kernel.AdamW(w.Data, o.mean.Tensors[i].Data, o.variance.Tensors[i].Data, gradient.Tensors[i].Data, s)
		return nil
	})
}
