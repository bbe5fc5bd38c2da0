package gpuworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"codea1/events"
)

// RolloutPolicy samples from one role's policy and says from which version.
// A Follower is one.
type RolloutPolicy interface {
	Version() int
	WaitVersion(ctx context.Context, least int) error
	EncodePrompt(ctx context.Context, messages []Message) ([]int32, error)
	Sample(ctx context.Context, requests []SampleRequest, params SamplingParams) ([][]events.Completion, int, error)
}

// RolloutConfig describes one role's sampling stage.
type RolloutConfig struct {
	Role   events.Role
	Policy RolloutPolicy
	Source string // of the events made, for example "code-rollout-1"
	Style  Style  // of the prompts; default StylePlain
	// TopP and TopK cut the sampled distribution; the log-probs recorded are
	// those of the whole one, so training needs the defaults. Defaults 1 and 0.
	TopP float64
	TopK int
	// MaxPromptTokens drops a group whose prompt is longer. Default 4,096.
	MaxPromptTokens int
	// PolicyWait is how long a batch waits for the policy version its groups
	// ask for, when none of them can run. Default 2 s.
	PolicyWait time.Duration
	// SnoozeFor is after how long a group whose policy version has not come is
	// delivered again. Default 250 ms.
	SnoozeFor time.Duration
	Now       func() time.Time // default time.Now
	Logger    *slog.Logger     // default: none
}

func (c RolloutConfig) withDefaults() RolloutConfig {
	if c.Style == "" {
		c.Style = StylePlain
	}
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
	if c.Now == nil {
		c.Now = time.Now
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
	if err := c.Style.Validate(); err != nil {
		return fmt.Errorf("rollout: %w", err)
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
