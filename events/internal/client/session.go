package client

import (
	"context"
	"sync"

	"codea1/events"
)

// Session is the lifetime of a consumer or a reader. One goroutine at a time
// uses it, and it is closed once.
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

// Context returns a context that ends when Close begins.
func (s *Session) Context() context.Context { return s.ctx }

// Begin waits until no other call is in progress; call End after it. It returns
// ctx.Err() if ctx ends first, and events.ErrClosed if the session does.
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

// End ends a call after Begin.
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
