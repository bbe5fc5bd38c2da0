package client

import (
	"context"
	"sync"

	"codea1/events"
)

// Session is a consumer or a reader: opened, used by one goroutine at a time,
// and closed once.
type Session struct {
	ctx     context.Context
	cancel  context.CancelFunc
	turn    chan struct{} // holds a token while a call is in progress
	closing sync.Once
}

// NewSession opens a session.
func NewSession() *Session {
	s := &Session{turn: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Context ends when closing begins.
func (s *Session) Context() context.Context { return s.ctx }

// Begin waits until no other call is in progress; End follows. It returns
// ctx.Err() when ctx ends first and events.ErrClosed when the session does.
func (s *Session) Begin(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		if s.ctx.Err() != nil {
			s.End()
			return events.ErrClosed
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ctx.Done():
		return events.ErrClosed
	}
}

// End ends a call that has begun.
func (s *Session) End() { <-s.turn }

// Close ends the session, waits for the call in progress and then calls last. A
// second Close does nothing.
func (s *Session) Close(last func()) {
	s.closing.Do(func() {
		s.cancel()
		s.turn <- struct{}{}
		defer s.End()
		last()
	})
}
