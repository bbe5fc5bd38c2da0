package gpuworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"codea1/events"
	"codea1/events/stage"
	"codea1/gpuworker/checkpoint"
)

// Hyperparameters are the settings of one role's training (design step 10).
// TrainingFlags.Hyperparameters makes them.
type Hyperparameters struct {
	Schedule       Schedule     // of the learning rate
	Update         UpdateConfig // of each optimizer step; LearningRate and Temperature are set per step
	GroupsPerStep  int          // groups of a training step
	GroupsPerBatch int          // groups of a mini-batch; each mini-batch is one optimizer step
	MaxStaleness   int          // policy versions that a group may be behind; 0 is the paper's synchronous schedule
	OldProbs       string       // OldSampled (or empty) or OldRecomputed
	ImportanceCap  float64      // with OldRecomputed: largest importance weight of a token; 0 for no weights
}

// Validate returns an error for the first value that is out of bounds.
func (h *Hyperparameters) Validate() error {
	if err := h.Schedule.validate(); err != nil {
		return err
	}
	u := &h.Update
	for _, c := range []struct {
		name        string
		value       float64
		least, most float64
	}{
		{"weight decay", u.WeightDecay, 0, 1e3}, {"beta1", u.Beta1, 0, 1}, {"beta2", u.Beta2, 0, 1},
		{"gradient clip", u.GradClip, 0, 1e9}, {"lower clip", u.ClipLow, 0, 1}, {"upper clip", u.ClipHigh, 0, 1e9},
		{"dual clip", u.DualClip, 0, 1e9}, {"KL coefficient", u.KLCoef, 0, 1e9}, {"importance cap", h.ImportanceCap, 0, 1e9},
	} {
		if !(c.value >= c.least && c.value <= c.most) {
			return fmt.Errorf("%s %v is outside %v to %v", c.name, c.value, c.least, c.most)
		}
	}
	switch {
	case u.Beta1 == 1 || u.Beta2 == 1:
		return errors.New("beta1 and beta2 must be below 1")
	case !(u.Epsilon > 0):
		return errors.New("epsilon must be above 0")
	case !(u.LogRatioClamp > 0):
		return errors.New("log-ratio clamp must be above 0")
	case u.DualClip != 0 && u.DualClip <= 1:
		return fmt.Errorf("dual clip %v must be above 1, or 0 for none", u.DualClip)
	case h.GroupsPerBatch < 1 || h.GroupsPerStep < 1:
		return fmt.Errorf("groups: want 1 or more, have %d per mini-batch and %d per step", h.GroupsPerBatch, h.GroupsPerStep)
	case h.OldProbs != "" && h.OldProbs != OldSampled && h.OldProbs != OldRecomputed:
		return fmt.Errorf("old log-probs are %q, want %q or %q", h.OldProbs, OldSampled, OldRecomputed)
	case h.MaxStaleness < 0:
		return fmt.Errorf("max staleness: want 0 or more, have %d", h.MaxStaleness)
	}
	return nil
}

// TrainerBus is the part of events.Bus that a Trainer uses.
type TrainerBus interface {
	Publish(ctx context.Context, messages ...events.Message) error
	Read(ctx context.Context, config events.ReadConfig) (events.Reader, error)
}

// TrainerConfig is the configuration of a Trainer.
type TrainerConfig struct {
	Bus         TrainerBus
	Learner     Learner
	Run         string
	Role        events.Role
	Shared      bool   // the model of role code samples in role test too, and is trained on both
	Source      string // of the output events, for example "code-trainer"
	Checkpoints string // folder of the role's checkpoints; created if missing
	Initial     string // checkpoint directory of version 0, and of the KL term's reference
	Steps       int    // training steps of the run; Run returns after the last
	Hyper       Hyperparameters
	KeepLast    int                // number of newest checkpoints to keep; at least 1
	KeepEvery   int                // keeps each version that it divides; 0 for none
	Remote      *checkpoint.Remote // store for replicas on other machines; nil for none
	Turns       *Turns             // order among the trainers of a GPU; nil: it trains at once
	Second      bool               // second in Turns
	Meter       *stage.Meter       // measures the trainer; nil disables it
	Logger      *slog.Logger       // default: discard
}

func (c *TrainerConfig) validate() error {
	if err := c.Role.Validate(); err != nil {
		return err
	}
	if err := events.ValidName(c.Run); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	switch {
	case c.Shared && c.Role != events.RoleCode:
		return fmt.Errorf("a shared model is trained as role %s", events.RoleCode)
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
