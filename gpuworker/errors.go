package gpuworker

import "errors"

var (
	// ErrPromptTooLong is returned by an engine for a prompt that does not fit
	// the model. The group is dropped; the worker goes on.
	ErrPromptTooLong = errors.New("prompt is longer than the model's context")
	// ErrDiverged is returned when an update gives a loss or a gradient that is
	// not a finite number. Nothing is saved.
	ErrDiverged = errors.New("training diverged")
)

// EngineError says which operation of an engine failed.
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
