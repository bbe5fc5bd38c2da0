package torch

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
)

const (
	maxLineBytes = 64 << 10 // a longer line is split
	tailLines    = 20
)

// lines is the standard error of a child. Lines in JSON become log records; the
// others are logged as text. It is an io.Writer for one goroutine.
type lines struct {
	logger *slog.Logger

	mu      sync.Mutex
	partial []byte
	last    []string
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, p...)
	for {
		end := bytes.IndexByte(l.partial, '\n')
		switch {
		case end >= 0:
			l.line(string(l.partial[:end]))
			l.partial = l.partial[end+1:]
		case len(l.partial) >= maxLineBytes:
			l.line(string(l.partial))
			l.partial = nil
		default:
			return len(p), nil
		}
	}
}

// flush logs a last line without an end.
func (l *lines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.partial) > 0 {
		l.line(string(l.partial))
		l.partial = nil
	}
}

func (l *lines) line(text string) {
	text = strings.TrimRight(strings.ToValidUTF8(text, "\uFFFD"), "\r ")
	if text == "" {
		return
	}
	level, message, fields, ok := parseLine(text)
	if !ok {
		level, message = slog.LevelInfo, text
	}
	kept := message
	if trace, ok := fields["traceback"].(string); ok {
		kept += "\n" + trace
	}
	l.last = append(l.last, kept)
	if extra := len(l.last) - tailLines; extra > 0 {
		l.last = slices.Delete(l.last, 0, extra)
	}
	attributes := []slog.Attr{slog.String("part", "torch")}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		attributes = append(attributes, slog.Any(name, fields[name]))
	}
	l.logger.LogAttrs(context.Background(), level, message, attributes...)
}

// parseLine reads a log line in JSON.
func parseLine(text string) (level slog.Level, message string, fields map[string]any, ok bool) {
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &fields) != nil {
		return 0, "", nil, false
	}
	name, _ := fields["level"].(string)
	message, ok = fields["message"].(string)
	if name == "critical" {
		name = "error"
	}
	if name == "warning" {
		name = "warn"
	}
	if !ok || level.UnmarshalText([]byte(name)) != nil {
		return 0, "", nil, false
	}
	delete(fields, "level")
	delete(fields, "message")
	return level, message, fields, true
}

// tail returns the last lines.
func (l *lines) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.last, "\n")
}
