package gpuworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"codea1/events"
)

// RolloutPolicy samples from one role's policy and reports the version. Follower
// implements it.
type RolloutPolicy interface {
	Version() int
	WaitVersion(ctx context.Context, least int) error
	EncodePrompt(ctx context.Context, messages []Message) ([]int32, error)
	Sample(ctx context.Context, requests []SampleRequest, params SamplingParams) ([][]events.Completion, int, error)
}

// RolloutConfig is the configuration of a Rollout.
type RolloutConfig struct {
	Role   events.Role
	Policy RolloutPolicy
	Source string  // of the output events, for example "code-rollout-1"
	Prompt *Prompt // default: of StylePlain
	// TopP and TopK limit the sampled distribution. The recorded log-probs are
	// those of the whole distribution, so training needs the defaults 1 and 0.
	TopP float64
	TopK int
	// MaxPromptTokens is the longest prompt; a group with a longer one is
	// dropped. Default 4,096.
	MaxPromptTokens int
	// PolicyWait is how long a batch waits for a policy version if none of its
	// groups can be sampled yet. Default 2 s.
	PolicyWait time.Duration
	// SnoozeFor is the delay until a group that waits for its policy version is
	// delivered again. Default 250 ms.
	SnoozeFor time.Duration
	Logger    *slog.Logger // default: discard
}

func (c RolloutConfig) withDefaults() RolloutConfig {
	if c.TopP == 0 {
		c.TopP = 1
	}
	if c.MaxPromptTokens == 0 {
		c.MaxPromptTokens = 4096
	}
	if c.PolicyWait == 0 {
		c.PolicyWait = 2 * time.Second
	}
	if c.SnoozeFor == 0 {
		c.SnoozeFor = 250 * time.Millisecond
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c *RolloutConfig) validate() error {
	if err := c.Role.Validate(); err != nil {
		return fmt.Errorf("rollout: %w", err)
	}
	if c.Prompt == nil {
		prompt, err := (&PromptFlags{PromptStyle: StylePlain}).Prompt(c.Role)
		if err != nil {
			return fmt.Errorf("rollout: %w", err)
		}
		c.Prompt = prompt
	}
	switch {
	case c.Policy == nil:
		return errors.New("rollout: a policy is needed")
	case c.Source == "":
		return errors.New("rollout: source is empty")
	case !(c.TopP > 0 && c.TopP <= 1):
		return fmt.Errorf("rollout: top-p %v is outside (0, 1]", c.TopP)
	case c.TopK < 0 || c.MaxPromptTokens < 1 || c.PolicyWait < 0 || c.SnoozeFor < 0:
		return errors.New("rollout: top-k, prompt limit and waits must not be negative")
	}
	return nil
}
