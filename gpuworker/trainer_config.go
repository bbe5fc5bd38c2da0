package gpuworker

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"codea1/events"
)

// Hyperparameters are those of one role's training (design step 10). The zero
// value trains nothing: start from DefaultHyperparameters.
type Hyperparameters struct {
	LearningRate      float64 // peak
	WarmupSteps       int     // optimizer steps
	OptimizerSteps    int     // of the whole schedule: training steps x mini-batches of a step
	MinLearningRatio  float64 // the cosine ends at this share of LearningRate
	WeightDecay       float64
	Beta1, Beta2      float64
	Epsilon           float64
	GradClip          float64 // global norm; 0 for none
	ClipLow, ClipHigh float64 // PPO: the ratio is clipped to [1-ClipLow, 1+ClipHigh]
	DualClip          float64 // 0 for none
	LogRatioClamp     float64 // > 0
	KLCoef            float64 // 0 for no reference model
	GroupsPerBatch    int     // groups of a mini-batch: one optimizer step each
	MaxStaleness      int     // policy versions a group may be behind; 0 is the paper's synchronous schedule
}

// DefaultHyperparameters returns the paper's values for a step of 256
// questions; OptimizerSteps is for the caller to set.
func DefaultHyperparameters() Hyperparameters {
	return Hyperparameters{
		LearningRate: 1e-6, WarmupSteps: 10, WeightDecay: 0.1,
		Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, GradClip: 1,
		ClipLow: 0.20, ClipHigh: 0.28, DualClip: 10, LogRatioClamp: 20, KLCoef: 0.001,
		GroupsPerBatch: 128,
	}
}

// Schedule returns the learning rate schedule.
func (h *Hyperparameters) Schedule() Schedule {
	return Schedule{Base: h.LearningRate, Warmup: h.WarmupSteps, Total: h.OptimizerSteps, MinRatio: h.MinLearningRatio}
}

// Validate names the first value that cannot be trained with.
func (h *Hyperparameters) Validate() error {
	if err := h.Schedule().validate(); err != nil {
		return err
	}
	for _, c := range []struct {
		name        string
		value       float64
		least, most float64
	}{
		{"weight decay", h.WeightDecay, 0, 1e3}, {"beta1", h.Beta1, 0, 1}, {"beta2", h.Beta2, 0, 1},
		{"gradient clip", h.GradClip, 0, 1e9}, {"lower clip", h.ClipLow, 0, 1}, {"upper clip", h.ClipHigh, 0, 1e9},
		{"dual clip", h.DualClip, 0, 1e9}, {"KL coefficient", h.KLCoef, 0, 1e9},
	} {
		if !(c.value >= c.least && c.value <= c.most) {
			return fmt.Errorf("%s %v is outside %v to %v", c.name, c.value, c.least, c.most)
		}
	}
	switch {
	case h.Beta1 == 1 || h.Beta2 == 1:
		return errors.New("beta1 and beta2 must be below 1")
	case !(h.Epsilon > 0):
		return errors.New("epsilon must be above 0")
	case !(h.LogRatioClamp > 0):
		return errors.New("log-ratio clamp must be above 0")
	case h.DualClip != 0 && h.DualClip <= 1:
		return fmt.Errorf("dual clip %v must be above 1, or 0 for none", h.DualClip)
	case h.GroupsPerBatch < 1:
		return fmt.Errorf("groups per mini-batch: want 1 or more, have %d", h.GroupsPerBatch)
	case h.MaxStaleness < 0:
		return fmt.Errorf("max staleness: want 0 or more, have %d", h.MaxStaleness)
	}
	return nil
}

// update returns the configuration of one optimizer step.
func (h *Hyperparameters) update(learningRate, temperature float64) UpdateConfig {
	return UpdateConfig{
		Loss: LossPPO, ClipLow: h.ClipLow, ClipHigh: h.ClipHigh, DualClip: h.DualClip,
		LogRatioClamp: h.LogRatioClamp, KLCoef: h.KLCoef, Temperature: temperature,
		LearningRate: learningRate, WeightDecay: h.WeightDecay,
		Beta1: h.Beta1, Beta2: h.Beta2, Epsilon: h.Epsilon, GradClip: h.GradClip,
	}
}

// TrainerConfig describes one role's trainer.
type TrainerConfig struct {
	Bus         events.Bus
	Learner     Learner
	Run         string
	Role        events.Role
	Source      string // of the events made, for example "code-trainer"
	Checkpoints string // folder of the role's checkpoints; made where missing
	Initial     string // checkpoint directory of version 0, and of the KL term's reference
	Steps       int    // training steps of the run; Run returns after the last
	Hyper       Hyperparameters
	KeepLast    int              // newest checkpoints kept; default 3
	KeepEvery   int              // multiples of it are kept too; 0 for none
	Now         func() time.Time // default time.Now
	Logger      *slog.Logger     // default: none
}

func (c TrainerConfig) withDefaults() TrainerConfig {
	if c.KeepLast == 0 {
		c.KeepLast = 3
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c *TrainerConfig) validate() error {
	if err := c.Role.Validate(); err != nil {
		return err
	}
	if err := events.ValidName(c.Run); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	switch {
	case c.Bus == nil || c.Learner == nil:
		return errors.New("a bus and a learner are needed")
	case c.Source == "":
		return errors.New("source is empty")
	case c.Checkpoints == "" || c.Initial == "":
		return errors.New("a checkpoint folder and an initial checkpoint are needed")
	case c.Steps < 1:
		return fmt.Errorf("steps: want 1 or more, have %d", c.Steps)
	case c.KeepLast < 1 || c.KeepEvery < 0:
		return fmt.Errorf("checkpoints kept: the last %d and every %d", c.KeepLast, c.KeepEvery)
	}
	return c.Hyper.Validate()
}
