package stage

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNotRunning is returned by Stage.Health before Run consumes and after it
// has ended.
var ErrNotRunning = errors.New("the loop is not running")

// SilenceError is returned by Stage.Health if the bus has not answered for too
// long.
type SilenceError struct {
	For time.Duration // since the last answer
	Err error         // error of the last request; nil while it is under way
}

func (e *SilenceError) Error() string {
	s := fmt.Sprintf("the bus has not answered for %v", e.For.Round(100*time.Millisecond))
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *SilenceError) Unwrap() error { return e.Err }

// The errors below are failures of a handler that the stage detects. They count
// like errors that the handler returns.

// PanicError is a recovered panic of a handler.
type PanicError struct {
	Value any
	Stack []byte // from debug.Stack
}

func (e *PanicError) Error() string { return fmt.Sprintf("handler panicked: %v", e.Value) }

// TimeoutError is the cause of a handler's context that ended after
// Config.HandleTimeout. It wraps context.DeadlineExceeded.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("handler took longer than %v: %v", e.After, context.DeadlineExceeded)
}

func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }

// ResultsError means that a handler did not return one result per event.
type ResultsError struct{ Results, Events int }

func (e *ResultsError) Error() string {
	return fmt.Sprintf("handler returned %d results for %d events", e.Results, e.Events)
}
