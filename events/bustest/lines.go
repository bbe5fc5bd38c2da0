package bustest

import (
	"context"
	"log/slog"
)

// maxLines bounds the lines that Lines keeps; no test logs as many.
const maxLines = 1000

// Lines is a slog.Handler that keeps log lines, as level and message.
type Lines struct {
	slog.Handler
	C chan string
}

// NewLines returns a handler for every level.
func NewLines() *Lines {
	return &Lines{Handler: slog.DiscardHandler, C: make(chan string, maxLines)}
}

// Enabled implements slog.Handler.
func (*Lines) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (l *Lines) Handle(_ context.Context, r slog.Record) error {
	l.C <- r.Level.String() + " " + r.Message
	return nil
}
