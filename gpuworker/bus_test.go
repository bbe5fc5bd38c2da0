package gpuworker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"codea1/events"
	"codea1/events/natsbus"
)

// server starts an embedded NATS server for one test.
func server(t *testing.T) *natsbus.Server {
	t.Helper()
	s, err := natsbus.StartServer(natsbus.ServerConfig{StoreDir: t.TempDir(), SyncInterval: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s
}

func connect(t *testing.T, s *natsbus.Server) events.Bus {
	t.Helper()
	b, err := natsbus.Connect(t.Context(), natsbus.Config{Server: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func publish(t *testing.T, b events.Bus, messages []events.Message) {
	t.Helper()
	for len(messages) > 0 {
		n := min(len(messages), events.MaxPublishBatch)
		if err := b.Publish(t.Context(), messages[:n]...); err != nil {
			t.Fatal(err)
		}
		messages = messages[n:]
	}
}

// read returns the first n events of the types, in order.
func read(t *testing.T, b events.Bus, run string, n int, types ...events.Type) []*events.Event {
	t.Helper()
	r, err := b.Read(t.Context(), events.ReadConfig{Run: run, Types: types})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var out []*events.Event
	for len(out) < n {
		m, _, err := r.Next(ctx)
		if err != nil {
			t.Fatalf("%d events of %d: %v", len(out), n, err)
		}
		e, err := m.Decode()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// background runs a service until the test ends or stop is called. stop returns the
// service's error.
func background(t *testing.T, run func(context.Context) error) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	var err error
	stopped := false
	stop = func() error {
		cancel()
		if !stopped {
			stopped = true
			err = <-done
		}
		return err
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

// failingBus is a bus that accepts no messages.
type failingBus struct{ events.Bus }

var errGone = errors.New("bus is gone")

func (failingBus) Publish(context.Context, ...events.Message) error { return errGone }
