package gpuworker

import (
	"errors"
	"fmt"
)

var (
	// ErrPromptTooLong is returned by an engine for a prompt that exceeds the
	// model's context. The rollout drops the group.
	ErrPromptTooLong = errors.New("prompt is longer than the model's context")
	// ErrBadRequest is returned by an engine that cannot compute the request, for
	// example because of a token outside the vocabulary. The engine is unchanged.
	ErrBadRequest = errors.New("bad request")
	// ErrDiverged is returned if an update gives a loss or a gradient that is
	// not finite. The trainer saves no checkpoint.
	ErrDiverged = errors.New("training diverged")
	// ErrStateLost is returned by a Learner that lost its weights in training,
	// for example with its process. The trainer restores the newest checkpoint.
	ErrStateLost = errors.New("the weights in training are lost")
)

// engineError adds the failed operation of the engine to an error.
func engineError(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("engine: %s: %w", op, err)
}
