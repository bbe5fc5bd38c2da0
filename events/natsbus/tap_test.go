package natsbus_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/natsbus"
)

// A tap shows each event once and no message that is no event. It goes on after an
// outage, and says that once.
func TestTapFollows(t *testing.T) {
	t.Parallel()
	s, bus := guarded(t)
	ctx := bounded(t)
	tap, err := startTap(t, natsbus.Config{URL: s.URL(natsbus.TapUser)})
	if err != nil {
		t.Fatal(err)
	}
	conn, _ := raw(t, s.URL(natsbus.PipelineUser))
	list := posed(4)
	forged := &nats.Msg{Subject: "codea1.r1.code.sampled.s000001-q0001", Header: nats.Header{}, Data: []byte("x")}
	list[3].Headers("ce-", func(name, value string) { forged.Header.Set(name, value) })
	for _, m := range []*nats.Msg{
		forged, {Subject: "codea1.r1.problem.posed.g"}, {Subject: "codea1.r1.x"}, {Subject: "codea1.r1.dead.execution.e.1"}, {Subject: "codea1.r1.retry.execution.e.1"},
	} {
		if err := conn.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.FlushWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := bus.Publish(ctx, list[1:3]...); err != nil {
			t.Fatal(err)
		}
	}
	follow(ctx, t, tap, list[1:3])

	relay := startRelay(t, strings.TrimPrefix(s.URL(""), "nats://"))
	var log safeBuffer
	far, err := startTap(t, natsbus.Config{
		URL: "nats://" + relay.Addr().String(), User: natsbus.TapUser, Password: passwordOf(t, s, natsbus.TapUser), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	relay.reset()
	for slot := 0; ; slot++ { // until the tap is back
		m := eventstest.Encode(eventstest.Posed("r1", 2, slot))
		if err := bus.Publish(ctx, m); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(ctx, retryTap)
		got, _, err := far.Next(short)
		cancel()
		if err == nil && got.Type == events.TypeProblemPosed {
			break
		}
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := far.Next(ctx); !errors.Is(err, events.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	for !strings.Contains(log.String(), "reconnected") { // the client says it in the background
		if ctx.Err() != nil {
			t.Fatal("the end of the outage is not logged")
		}
		time.Sleep(time.Millisecond)
	}
	for _, text := range []string{"connection lost", "reconnected"} {
		if n := strings.Count(log.String(), text); n != 1 {
			t.Errorf("%q is logged %d times:\n%s", text, n, log.String())
		}
	}
}

// safeBuffer is a bytes.Buffer that a client writes to while a test reads it.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// retryTap is the time between two events that are published to a tap after an
// outage.
const retryTap = 50 * time.Millisecond

func startTap(t *testing.T, config natsbus.Config) (events.Reader, error) {
	t.Helper()
	return connectTo(t, config).Tap("r1")
}

func passwordOf(t *testing.T, s *natsbus.Server, user string) string {
	t.Helper()
	u, err := url.Parse(s.URL(user))
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	return password
}

// follow reads messages from a reader.
func follow(ctx context.Context, t *testing.T, r events.Reader, want []events.Message) {
	t.Helper()
	for i := range want {
		m, at, err := r.Next(ctx)
		if err != nil || m.ID != want[i].ID || at != "" {
			t.Fatalf("read %s %s at %q, %v; want %s", m.Type, m.Group, at, err, want[i].Group)
		}
	}
}

// The login of the tap reads one run.
func TestTapOfAnotherRun(t *testing.T) {
	t.Parallel()
	s, _ := guarded(t)
	bus := connectTo(t, natsbus.Config{URL: s.URL(natsbus.TapUser)})
	if _, err := bus.Tap("r2"); !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("%v, want %v", err, nats.ErrPermissionViolation)
	}
	if _, err := bus.Tap("*"); err == nil {
		t.Error("a wildcard is the name of a run")
	}
}
