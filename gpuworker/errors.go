package gpuworker

import "errors"

var (
	// ErrPromptTooLong is returned by an engine for a prompt that exceeds the
	// model's context. The rollout drops the group.
	ErrPromptTooLong = errors.New("prompt is longer than the model's context")
	// ErrDiverged is returned if an update gives a loss or a gradient that is
	// not finite. The trainer saves no checkpoint.
	ErrDiverged = errors.New("training diverged")
)

// EngineError is a failed operation of an engine.
type EngineError struct {
	Op  string // "encode prompt", "sample", "load weights", ...
	Err error
}

func (e *EngineError) Error() string { return "engine: " + e.Op + ": " + e.Err.Error() }

func (e *EngineError) Unwrap() error { return e.Err }

func engineError(op string, err error) error {
	if err == nil {
		return nil
	}
	return &EngineError{Op: op, Err: err}
}
