package events

import (
	"errors"
	"strconv"
	"strings"
)

// Limits of events. A value over its limit is an error that names the field; it is
// never cut.
const (
	// MaxPayloadBytes bounds a payload, before and after compression.
	MaxPayloadBytes = 8 << 20
	// MaxTokenBytes bounds run, group and source names.
	MaxTokenBytes = 128
	// MaxTextBytes bounds one text field: a question, an answer, a response.
	MaxTextBytes = 256 << 10
	// MaxItems bounds every list and map of a payload.
	MaxItems = 1 << 16
	// MaxDepth bounds the nesting of a payload.
	MaxDepth = 16
	// MaxPublishBatch bounds the messages of one Publish.
	MaxPublishBatch = 1000
	// ZstdThreshold is the encoded size from which a payload is compressed.
	ZstdThreshold = 1 << 10
)

// checkToken accepts a text that is safe as a token of a NATS subject, as a Kafka
// key and as a path element.
func checkToken(field, s string) error {
	if s == "" || len(s) > MaxTokenBytes {
		return invalid(field, "want 1 to %d bytes, have %d", MaxTokenBytes, len(s))
	}
	for _, r := range s {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", r) {
			return invalid(field, "%q holds %q; use letters, digits, '-' and '_'", clip(s), r)
		}
	}
	return nil
}

// ValidName checks a name of a run or a group.
func ValidName(s string) error { return checkToken("name", s) }

func checkText(field, s string) error {
	if len(s) > MaxTextBytes {
		return invalid(field, "%d bytes, over the limit of %d", len(s), MaxTextBytes)
	}
	return nil
}

func checkCount(field string, n, most int) error {
	if n < 0 || n > most {
		return invalid(field, "%d is outside 0 to %d", n, most)
	}
	return nil
}

func isHex(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdef") == ""
}

func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

// within adds the item of a list to an error. Building the name of every item
// before checking it would take longer than the check.
func within(list string, i int, err error) error {
	var f *FieldError
	if !errors.As(err, &f) {
		return err
	}
	name := at(list, i)
	if f.Field != "" {
		name += "." + f.Field
	}
	return &FieldError{Field: name, Reason: f.Reason}
}

// at returns the name of an item of a list.
func at(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }
