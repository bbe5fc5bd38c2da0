package fork

import (
	"context"
	"errors"
	"flag"
	"testing"
	"time"

	"codea1/events"
	"codea1/replay/eventlog"
	"codea1/replay/internal/replaytest"
)

func TestMain(m *testing.M) {
	// Many tests wait for a bus that has no more events. The flag -parallel
	// overrides this.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	replaytest.Main(m)
}

// record runs a recorder of a run until its log has as many events. It returns
// the messages that the recorder appended.
func record(t testing.TB, bus eventlog.Bus, l *eventlog.Log, until uint64, config eventlog.RecorderConfig) (appended []events.Message, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	config.OnAppend = func(_ context.Context, messages []events.Message) error {
		appended = append(appended, messages...)
		if last, _ := l.Last(); last >= until {
			cancel()
		}
		return nil
	}
	r, err := eventlog.NewRecorder(bus, l, config)
	if err != nil {
		t.Fatal(err)
	}
	err = r.Run(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Fatal("the recorder did not reach the last event")
	}
	return appended, err
}
