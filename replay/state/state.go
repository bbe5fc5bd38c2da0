package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"codea1/events"
	"codea1/replay/mistakes"
)

// Version is the version of the encoding and of the folds. A State of another
// version is folded again from the log, never converted.
const Version = 2

// ErrMalformed is returned for bytes that are not an encoded State.
var ErrMalformed = errors.New("malformed state")

// Event is the part of an event that the folds read.
type Event struct {
	Seq   uint64 // sequence number in the log
	Type  events.Type
	Group string // set for the types of ReadsGroup
	// Payload is set for the types of ReadsPayload. It is nil if it cannot be
	// decoded; then the event is only counted.
	Payload events.Payload
	Changes []mistakes.Change // changes of the Mistake Book by a group.rewarded event
}

// ReadsPayload reports whether a fold reads the payload of a type. It returns
// false for the types with large payloads, so that a fold of a log is cheap.
func ReadsPayload(t events.Type) bool {
	switch t {
	case events.TypeRunStarted, events.TypeGroupRewarded, events.TypeGroupDropped, events.TypePolicyUpdated, events.TypeEvalScored, events.TypeRunFinished:
		return true
	}
	return false
}

// ReadsGroup reports whether a fold reads the group of an event of a type.
func ReadsGroup(t events.Type) bool { return t == events.TypeProblemPosed || ReadsPayload(t) }

// State holds all folds of a run at one position. It grows by less than a
// kilobyte for each step and by some ten bytes for each group of an evaluation.
// It holds only the training groups in flight.
type State struct {
	Cursor      Cursor
	Metrics     Metrics
	Checkpoints Checkpoints
}

// New returns the state of a run without events.
func New() *State {
	return &State{Cursor: newCursor(), Metrics: newMetrics()}
}

// Apply applies the next event.
func (s *State) Apply(e *Event) {
	s.Metrics.apply(e)
	s.Cursor.apply(e)
	s.Checkpoints.apply(e)
}

// Encode returns the state as JSON with sorted keys. Equal states have equal
// bytes.
func (s *State) Encode() []byte {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // every field of a State has a JSON form
	}
	return raw
}

// Decode is the inverse of Encode. It accepts canonical bytes only.
func Decode(raw []byte) (*State, error) {
	s := New()
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	c, m := &s.Cursor, &s.Metrics
	null := c.Steps == nil || c.Evaluations == nil || m.Events == nil || m.Steps == nil || m.Evaluations == nil
	if null || !bytes.Equal(s.Encode(), raw) {
		return nil, fmt.Errorf("%w: %d bytes are not canonical", ErrMalformed, len(raw))
	}
	return s, nil
}

// TrainingStep returns the step in the name of a training group, and false for
// any other name.
func TrainingStep(group string) (step int, ok bool) {
	digits, slot, ok := strings.Cut(strings.TrimPrefix(group, "s"), "-q")
	step, err := strconv.Atoi(digits)
	if !ok || err != nil || step < 1 || slot == "" || group[0] != 's' {
		return 0, false
	}
	return step, true
}

// evaluationTag returns the tag in the name of an evaluation group, and false
// for any other name.
func evaluationTag(group string) (tag string, ok bool) {
	last := strings.LastIndexByte(group, '-')
	if last < 3 || !strings.HasPrefix(group, "e-") {
		return "", false
	}
	return group[2:last], true
}
