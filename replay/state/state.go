package state

import (
	"fmt"
	"strconv"
	"strings"

	"codea1/events"
	"codea1/replay/mistakes"
)

// Event is what a fold is told of an event.
type Event struct {
	Seq   uint64 // its number in the log
	Type  events.Type
	Group string // of the types that ReadsGroup names
	// Payload of the types that ReadsPayload names; nil if nobody can read it,
	// and the event then only counts as one of its type.
	Payload events.Payload
	Changes []mistakes.Change // what a group.rewarded event changed in the Mistake Book
}

// ReadsPayload reports whether a fold needs what an event of a type says. The
// types it leaves out are the large ones, so that a fold of a whole log is cheap.
func ReadsPayload(t events.Type) bool {
	switch t {
	case events.TypeRunStarted, events.TypeGroupRewarded, events.TypeGroupDropped, events.TypePolicyUpdated, events.TypeEvalScored, events.TypeRunFinished:
		return true
	}
	return false
}

// ReadsGroup reports whether a fold needs to know which group an event is of.
func ReadsGroup(t events.Type) bool { return t == events.TypeProblemPosed || ReadsPayload(t) }

// State is all folds of a run at one position. It grows by some hundred bytes a
// step and by some ten for every group of an evaluation; of training groups only
// those in flight are held.
type State struct {
	Cursor      Cursor
	Metrics     Metrics
	Checkpoints Checkpoints
}

// New returns the state of a run that has not begun.
func New() *State {
	return &State{Cursor: newCursor(), Metrics: newMetrics()}
}

// Apply takes in the next event.
func (s *State) Apply(e *Event) {
	s.Metrics.apply(e) // before the cursor forgets a step
	s.Cursor.apply(e)
	s.Checkpoints.apply(e)
}

// Encode returns the state: Version as one byte, then each fold. Equal states
// have equal bytes.
func (s *State) Encode() []byte {
	e := encoder{[]byte{Version}}
	s.Cursor.encode(&e)
	s.Metrics.encode(&e)
	s.Checkpoints.encode(&e)
	return e.b
}

// Decode is the inverse of Encode. It accepts canonical bytes only.
func Decode(raw []byte) (*State, error) {
	if len(raw) == 0 || raw[0] != Version {
		return nil, fmt.Errorf("%w: not version %d", ErrMalformed, Version)
	}
	d := decoder{rest: raw[1:]}
	s := New()
	s.Cursor.decode(&d)
	s.Metrics.decode(&d)
	s.Checkpoints.decode(&d)
	if d.failed || len(d.rest) > 0 || string(s.Encode()) != string(raw) {
		return nil, fmt.Errorf("%w: %d bytes", ErrMalformed, len(raw))
	}
	return s, nil
}

// TrainingStep reads the step off the name of a group that was posed for
// training; false for other names.
func TrainingStep(group string) (step int, ok bool) {
	digits, slot, ok := strings.Cut(strings.TrimPrefix(group, "s"), "-q")
	step, err := strconv.Atoi(digits)
	if !ok || err != nil || step < 1 || slot == "" || group[0] != 's' {
		return 0, false
	}
	return step, true
}

// evaluationTag reads the tag off the name of a group that was posed for an
// evaluation.
func evaluationTag(group string) (tag string, ok bool) {
	last := strings.LastIndexByte(group, '-')
	if last < 3 || !strings.HasPrefix(group, "e-") {
		return "", false
	}
	return group[2:last], true
}
