package events

import (
	"errors"
	"fmt"
)

var (
	// ErrUnknownType is returned for an event type this build does not know.
	ErrUnknownType = errors.New("unknown event type")
	// ErrNewerSchema is returned for a payload written by a newer version.
	ErrNewerSchema = errors.New("payload schema is newer than this build")
	// ErrTooLarge is returned for a payload over MaxPayloadBytes.
	ErrTooLarge = errors.New("payload over the size limit")
	// ErrMalformed is returned for bytes that are not a well-formed payload.
	ErrMalformed = errors.New("malformed payload")
	// ErrClosed is returned by every call on a closed Bus, Consumer or Reader.
	ErrClosed = errors.New("closed")
	// ErrLineage is returned for an event that contradicts a stored one: another
	// event of the same type and group.
	ErrLineage = errors.New("another event of this type and group is stored already")
	// ErrPosition is returned for a position past the end of the stream: the
	// stream was replaced, or its server lost messages that it had confirmed.
	ErrPosition = errors.New("position is past the end of the stream")
)

// FieldError names the field of an event that breaks an invariant.
type FieldError struct {
	Field  string
	Reason string
}

func (e *FieldError) Error() string { return "event field " + e.Field + ": " + e.Reason }

func invalid(field, format string, args ...any) error {
	return &FieldError{Field: field, Reason: fmt.Sprintf(format, args...)}
}
