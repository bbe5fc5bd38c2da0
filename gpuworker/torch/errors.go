package torch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"codea1/gpuworker"
)

// Errors of the engine's calls. A missing checkpoint is fs.ErrNotExist, a prompt
// over the model's context gpuworker.ErrPromptTooLong, numbers that are not
// finite gpuworker.ErrDiverged.
var (
	ErrBadRequest  = gpuworker.ErrBadRequest
	ErrMismatch    = errors.New("checkpoint of another model, or of one that the engine cannot run")
	ErrNoReference = errors.New("no reference policy is loaded")
	ErrOutOfMemory = errors.New("out of memory")
	ErrInternal    = errors.New("the Python side failed")
	ErrProtocol    = errors.New("the Python side does not speak this engine's protocol")
	ErrDied        = errors.New("the Python child died")
	ErrClosed      = errors.New("the engine is closed")
)

// codes are the error codes of PROTOCOL.md.
var codes = map[string]error{
	"bad_request":        ErrBadRequest,
	"prompt_too_long":    gpuworker.ErrPromptTooLong,
	"missing_checkpoint": fs.ErrNotExist,
	"mismatch":           ErrMismatch,
	"no_reference":       ErrNoReference,
	"diverged":           gpuworker.ErrDiverged,
	"out_of_memory":      ErrOutOfMemory,
	"cancelled":          context.Canceled,
	"internal":           ErrInternal,
}

// answerError returns the error of an answer; nil for a result.
func answerError(a *answer) error {
	if a.Kind != kindError {
		return nil
	}
	known, ok := codes[a.Code]
	if !ok {
		return fmt.Errorf("%w: error code %q: %s", ErrProtocol, a.Code, a.Message)
	}
	return fmt.Errorf("%w: %s", known, a.Message)
}
