package attempt

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"codea1/events"
)

func TestFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFollower("r")
		first := &events.RunStarted{Attempt: 1, Config: "seed: 1", Problems: 4}
		second := &events.RunStarted{Attempt: 2, Config: "seed: 1", Problems: 4}
		go func() {
			time.Sleep(time.Hour)
			f.apply(first)
			time.Sleep(settleTime / 2)
			f.apply(&events.RunFinished{Attempt: 1, Reason: events.RunStopped})
			f.apply(second)
		}()
		started, completed, err := f.Present(t.Context())
		if err != nil || completed || started != second {
			t.Errorf("present: %+v, completed %v, %v", started, completed, err)
		}

		// The end of an earlier attempt does not end the run.
		f.apply(&events.RunFinished{Attempt: 1, Reason: events.RunCompleted})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Wait(ctx, second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the run goes on, but Wait returned %v", err)
		}
		changed := &events.RunStarted{Attempt: 3, Config: "seed: 1\nsteps: 9", Problems: 4}
		f.apply(changed)
		if err := f.Wait(t.Context(), second); !errors.Is(err, ErrConfigurationChanged) {
			t.Errorf("another configuration: %v", err)
		}
		f.apply(&events.RunFinished{Attempt: 3, Reason: events.RunCompleted})
		if err := f.Wait(t.Context(), changed); err != nil {
			t.Errorf("the run is completed: %v", err)
		}
	})
}
