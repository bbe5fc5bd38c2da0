package client

import (
	"fmt"

	"codea1/events"
)

// ValidateBatch checks the messages of one Publish.
func ValidateBatch(messages []events.Message) error {
	if len(messages) > events.MaxPublishBatch {
		return fmt.Errorf("%d messages, limit %d", len(messages), events.MaxPublishBatch)
	}
	for i := range messages {
		m := &messages[i]
		if err := m.Validate(); err != nil {
			return fmt.Errorf("%s %s: %w", m.Type, m.Group, err)
		}
		if len(m.Data) > events.MaxPayloadBytes {
			return fmt.Errorf("%s %s: %w: %d bytes, limit %d", m.Type, m.Group, events.ErrTooLarge, len(m.Data), events.MaxPayloadBytes)
		}
	}
	return nil
}
