package stage

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codea1/events"
)

// extended records the times of its extensions.
type extended struct {
	events.Delivery
	at  []time.Time
	err error
}

func (e *extended) Extend(context.Context) error {
	e.at = append(e.at, time.Now())
	return e.err
}

func TestExtend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		deliveries := []*extended{{}, {err: errors.New("no connection")}, {}}
		ctx, stop := context.WithCancel(t.Context())
		var extending sync.WaitGroup
		extending.Go(func() {
			extend(ctx, []events.Delivery{deliveries[0], deliveries[1], deliveries[2]}, 10*time.Second)
		})
		time.Sleep(35 * time.Second)
		stop()
		extending.Wait()
		time.Sleep(time.Hour)
		for i, d := range deliveries {
			if len(d.at) != 3 {
				t.Fatalf("delivery %d was extended %d times in 35s, want 3", i, len(d.at))
			}
			for n, at := range d.at {
				if want := time.Duration(n+1) * 10 * time.Second; at.Sub(began) != want {
					t.Errorf("delivery %d was extended after %v, want %v", i, at.Sub(began), want)
				}
			}
		}
	})
}

func TestBusyMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b busyMeter
		b.change(+1, time.Now())
		time.Sleep(time.Second)
		b.change(+1, time.Now())
		time.Sleep(time.Second)
		if got := b.read(time.Now()); got != 3*time.Second {
			t.Errorf("busy for %v, want 3s", got)
		}
		b.change(-1, time.Now())
		b.change(-1, time.Now())
		time.Sleep(time.Hour)
		b.change(+1, time.Now())
		time.Sleep(time.Second)
		if got := b.read(time.Now()); got != 4*time.Second {
			t.Errorf("busy for %v, want 4s", got)
		}
	})
}
