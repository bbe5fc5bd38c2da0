package kernel

import "math"

// AdamWStep holds the settings of one optimizer step.
type AdamWStep struct {
	LearningRate float64
	Beta1, Beta2 float64
	Epsilon      float64
	WeightDecay  float64 // decoupled: weights are reduced by the share LearningRate*WeightDecay
	GradScale    float64 // factor of every gradient; below 1 to clip the norm
	Step         int     // 1 for the first step
}

// AdamW updates weights and their moments m and v with the gradient grad
// (Loshchilov and Hutter, "Decoupled Weight Decay Regularization", algorithm 2
// with bias correction). All slices have len(weights) elements.
func AdamW(weights, m, v, grad []float32, step AdamWStep) {
	n := len(weights)
	t := float64(step.Step)
	current().adamw(weights, m[:n], v[:n], grad[:n],
		float32(step.GradScale),
		float32(step.Beta1), float32(1-step.Beta1),
		float32(step.Beta2), float32(1-step.Beta2),
		float32(1/math.Sqrt(1-math.Pow(step.Beta2, t))), float32(step.Epsilon),
		float32(step.LearningRate/(1-math.Pow(step.Beta1, t))),
		float32(1-step.LearningRate*step.WeightDecay))
}
