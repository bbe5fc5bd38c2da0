package stage

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNotRunning is what Stage.Health returns before Run has begun to consume
// and after it has ended.
var ErrNotRunning = errors.New("the loop is not running")

// SilenceError is what Stage.Health returns when the bus has not answered for
// too long.
type SilenceError struct {
	For time.Duration // since the bus answered last
	Err error         // what the last request came to; nil when it is still under way
}

func (e *SilenceError) Error() string {
	s := fmt.Sprintf("the bus has not answered for %v", e.For.Round(100*time.Millisecond))
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *SilenceError) Unwrap() error { return e.Err }

// The errors below are failures of a handler that the stage found out by
// itself. They count like an error that the handler returns.

// PanicError is a panic of a handler, recovered.
type PanicError struct {
	Value any
	Stack []byte // of the goroutine, as debug.Stack returns it
}

func (e *PanicError) Error() string { return fmt.Sprintf("handler panicked: %v", e.Value) }

// TimeoutError is the cause of the end of a handler's context when it ran over
// Config.HandleTimeout. It is a context.DeadlineExceeded.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("handler ran over %v: %v", e.After, context.DeadlineExceeded)
}

func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }

// ResultsError is a handler that did not return one result per event.
type ResultsError struct{ Results, Events int }

func (e *ResultsError) Error() string {
	return fmt.Sprintf("handler returned %d results for %d events", e.Results, e.Events)
}
