package events

import (
	"bytes"
	"errors"
	"fmt"
)

// ErrForeignEvent is matched by every *ForeignEventError.
var ErrForeignEvent = errors.New("another event is stored under this ID")

// ForeignEventError is returned by Bus.Publish when the bus has another payload
// under the ID of the message. The stored event counts.
type ForeignEventError struct {
	Stored  Message
	Refused string // hash of the refused payload
}

func (e *ForeignEventError) Error() string {
	return fmt.Sprintf("%s %s: %v: %s has the payload %s, refused %s",
		e.Stored.Type, e.Stored.Group, ErrForeignEvent, e.Stored.ID, payloadHash(&e.Stored), e.Refused)
}

// Is reports true for ErrForeignEvent.
func (e *ForeignEventError) Is(target error) bool { return target == ErrForeignEvent }

// payloadHash returns the hash of a payload, or the reason why it has none.
func payloadHash(m *Message) (hash string) {
	if err := m.WithRaw(func(_ []byte, sum func() string) error { hash = sum(); return nil }); err != nil {
		return err.Error()
	}
	return hash
}

// Standing decides the meaning of a stored message for the publisher of m, which has
// the same type and group. It returns true if the stored one is m, and false if it
// is no event, so that m is to be published beside it. The error is ErrLineage or
// a *ForeignEventError if the stored one is another event.
func (m *Message) Standing(stored *Message) (bool, error) {
	if stored.ID == m.ID && stored.SchemaVersion == m.SchemaVersion && stored.Encoding == m.Encoding && bytes.Equal(stored.Data, m.Data) {
		return true, nil
	}
	if _, err := stored.Admit(); err != nil {
		return false, nil
	}
	if stored.ID != m.ID {
		return false, fmt.Errorf("%s %s: %w: stored %s, refused %s", m.Type, m.Group, ErrLineage, stored.ID, m.ID)
	}
	if refused := payloadHash(m); payloadHash(stored) != refused {
		return false, &ForeignEventError{Stored: *stored, Refused: refused}
	}
	return true, nil
}
