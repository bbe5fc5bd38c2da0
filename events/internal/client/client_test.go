package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"codea1/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// thing is opened on a Life and takes a second to close.
type thing struct {
	life   *Life
	err    error
	closed int
}

func (c *thing) Close() error {
	defer c.life.Forget(c)
	time.Sleep(time.Second)
	c.closed++
	return c.err
}

func TestLifeClosesWhatIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLife()
		failed := errors.New("cannot close")
		gone, open, failing := &thing{life: l}, &thing{life: l}, &thing{life: l, err: failed}
		for _, c := range []*thing{gone, open, failing} {
			if err := l.Track(c); err != nil {
				t.Fatal(err)
			}
		}
		_ = gone.Close()
		first, err := l.Close()
		if !first || !errors.Is(err, failed) {
			t.Errorf("close: %v, %v", first, err)
		}
		if gone.closed != 1 || open.closed != 1 || failing.closed != 1 {
			t.Errorf("closed %d, %d and %d times", gone.closed, open.closed, failing.closed)
		}
		if err := l.Track(open); !errors.Is(err, events.ErrClosed) {
			t.Errorf("track after close: %v", err)
		}
		if first, err := l.Close(); first || err != nil {
			t.Errorf("second close: %v, %v", first, err)
		}
	})
}

func TestSessionTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSession()
		if err := s.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Begin(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("begin beside another call: %v", err)
		}
		blocked := make(chan error)
		go func() { blocked <- s.Begin(t.Context()) }()
		synctest.Wait()
		last := 0
		go func() {
			<-s.Context().Done() // a call in progress waits for it
			time.Sleep(time.Second)
			s.End()
		}()
		began := time.Now()
		for range 2 {
			s.Close(func() { last++ })
		}
		if waited := time.Since(began); waited != time.Second || last != 1 {
			t.Errorf("closed after %v, %d times", waited, last)
		}
		if err := <-blocked; !errors.Is(err, events.ErrClosed) {
			t.Errorf("begin while closing: %v", err)
		}
		for range 100 { // the turn is free, but the session is closed
			if err := s.Begin(t.Context()); !errors.Is(err, events.ErrClosed) {
				t.Fatalf("begin after close: %v", err)
			}
		}
	})
}

func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		owner, end := context.WithCancel(t.Context())
		both, release := Both(ctx, owner)
		defer release()
		if err := Pause(ctx, owner, time.Second); err != nil || Ended(ctx, owner) != nil || both.Err() != nil {
			t.Errorf("pause: %v", err)
		}
		cancel()
		if err := Pause(ctx, owner, time.Hour); !errors.Is(err, context.Canceled) || !errors.Is(Ended(ctx, owner), context.Canceled) {
			t.Errorf("pause: %v", err)
		}
		other, stop := Both(t.Context(), owner)
		defer stop()
		end()
		if err := Pause(t.Context(), owner, time.Hour); !errors.Is(err, events.ErrClosed) || !errors.Is(Ended(ctx, owner), events.ErrClosed) {
			t.Errorf("pause: %v", err)
		}
		<-other.Done()
	})
}
