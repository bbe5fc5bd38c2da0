package kernel

import "math"

// AdamWStep holds the settings of one optimizer step.
type AdamWStep struct {
	LearningRate float64
	Beta1, Beta2 float64
	Epsilon      float64
	WeightDecay  float64 // decoupled: weights shrink by LearningRate*WeightDecay
	GradScale    float64 // multiplies every gradient: 1, or less to clip their norm
	Step         int     // 1 for the first step
}

// adamwFactors is what the inner loop needs of a step; its layout is known to
// the assembly.
type adamwFactors struct {
	gradScale float32
	beta1     float32
	beta1C    float32 // 1-beta1
	beta2     float32
	beta2C    float32 // 1-beta2
	rootScale float32 // 1/sqrt(1-beta2^step)
	epsilon   float32
	rate      float32 // LearningRate/(1-beta1^step)
	decay     float32 // 1-LearningRate*WeightDecay
}

// AdamW updates weights and their moments m and v from grad, which stays as it
// is (Loshchilov and Hutter, "Decoupled Weight Decay Regularization",
// algorithm 2 with bias correction). All slices have len(weights) elements.
func AdamW(weights, m, v, grad []float32, step AdamWStep) {
	n := len(weights)
	f := adamwFactors{
		gradScale: float32(step.GradScale),
		beta1:     float32(step.Beta1),
		beta1C:    float32(1 - step.Beta1),
		beta2:     float32(step.Beta2),
		beta2C:    float32(1 - step.Beta2),
		rootScale: float32(1 / math.Sqrt(1-math.Pow(step.Beta2, float64(step.Step)))),
		epsilon:   float32(step.Epsilon),
		rate:      float32(step.LearningRate / (1 - math.Pow(step.Beta1, float64(step.Step)))),
		decay:     float32(1 - step.LearningRate*step.WeightDecay),
	}
	current().adamw(weights, m[:n], v[:n], grad[:n], &f)
}
