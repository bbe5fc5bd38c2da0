package natsbus

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// serverLog passes the server's log to slog and remembers the reason of a
// failure, which the server reports nowhere else. It implements the logger
// interface of nats-server.
type serverLog struct {
	logger *slog.Logger

	mu        sync.Mutex
	fatalText string
	errorText string
}

// Noticef implements server.Logger.
func (l *serverLog) Noticef(format string, v ...any) { l.debug(format, v) }

// Debugf implements server.Logger.
func (l *serverLog) Debugf(format string, v ...any) { l.debug(format, v) }

// Tracef implements server.Logger.
func (l *serverLog) Tracef(format string, v ...any) { l.debug(format, v) }

// Warnf implements server.Logger. It drops the warning about large payloads,
// because events.MaxPayloadBytes is chosen.
func (l *serverLog) Warnf(format string, v ...any) {
	if strings.HasPrefix(format, "Maximum payloads over") {
		l.debug(format, v)
		return
	}
	l.warn(format, v)
}

// Errorf implements server.Logger.
func (l *serverLog) Errorf(format string, v ...any) {
	text := l.warn(format, v)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errorText = text
}

// Fatalf implements server.Logger. The server expects it to end the process;
// StartServer returns the text as an error instead.
func (l *serverLog) Fatalf(format string, v ...any) {
	text := l.warn(format, v)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fatalText = text
}

func (l *serverLog) debug(format string, v []any) {
	l.logger.Debug("nats server", "message", fmt.Sprintf(format, v...))
}

func (l *serverLog) warn(format string, v []any) string {
	text := fmt.Sprintf(format, v...)
	l.logger.Warn("nats server", "message", text)
	return text
}

func (l *serverLog) fatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatalText
}

func (l *serverLog) lastError() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.errorText == "" {
		return "no reason given"
	}
	return l.errorText
}
