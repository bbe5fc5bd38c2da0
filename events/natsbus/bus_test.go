package natsbus_test

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/eventstest"
	"codea1/events/natsbus"
	"codea1/events/natsbus/natstest"
)

// raw is a plain client of the same server.
func raw(t *testing.T, url string) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return conn, js
}

// A malformed message ends neither a consumer nor a reader.
func TestForeignMessages(t *testing.T) {
	server := natstest.Start(t)
	log := bustest.NewLines()
	bus := server.Connect(t, natsbus.Config{Logger: slog.New(log)})
	ctx := bounded(t)
	if err := bus.EnsureStream(ctx, "r1"); err != nil {
		t.Fatal(err)
	}
	_, js := raw(t, server.URL())
	real := eventstest.Encode(eventstest.Posed("r1", 1, 7))
	lying := nats.NewMsg("codea1.r1.problem.posed.s000001-q0008")
	real.Headers("ce-", lying.Header.Set)
	lying.Data = real.Data
	bare := nats.NewMsg("codea1.r1.problem.posed.s000001-q0009")
	bare.Data = []byte("hello")
	for _, m := range []*nats.Msg{lying, bare} {
		if _, err := js.PublishMsg(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := bus.Publish(ctx, real); err != nil {
		t.Fatal(err)
	}
	c, err := bus.Consume(ctx, events.ConsumeConfig{
		Run: "r1", Name: "worker", Types: []events.Type{events.TypeProblemPosed}, AckWait: time.Minute, MaxInFlight: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Fetch(ctx, 1, 0)
	if err != nil || got[0].Message().ID != real.ID {
		t.Fatalf("fetch: %v, %v", got, err)
	}
	if err := got[0].Ack(ctx); err != nil {
		t.Fatal(err)
	}
	r, err := bus.Read(ctx, events.ReadConfig{Run: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	m, position, err := r.Next(ctx)
	if err != nil || m.ID != real.ID || position != "3" {
		t.Fatalf("next: %s at %q, %v", m.Group, position, err)
	}
	for range 4 {
		if line := <-log.C; !strings.HasPrefix(line, "ERROR") {
			t.Errorf("logged %q", line)
		}
	}
	// A reader that asks for malformed messages gets them in their place.
	r, err = bus.Read(ctx, events.ReadConfig{Run: "r1", Malformed: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []*nats.Msg{lying, bare} {
		_, position, err := r.Next(ctx)
		var malformed *events.MalformedError
		if !errors.As(err, &malformed) || malformed.Place != want.Subject || !bytes.Equal(malformed.Data, want.Data) ||
			len(malformed.Header) != 0 != (want == lying) || position != events.Position(strconv.Itoa(i+1)) {
			t.Errorf("next: %v at %q: %+v", err, position, malformed)
		}
	}
	if m, position, err := r.Next(ctx); err != nil || m.ID != real.ID || position != "3" {
		t.Errorf("next: %s at %q, %v", m.Group, position, err)
	}
	for {
		lag, err := bus.Lag(ctx, "r1", "worker")
		if err != nil {
			t.Fatal(err)
		}
		if lag == (events.Lag{}) {
			return
		}
	}
}

// The server enforces one event per subject, also for other clients.
func TestServerKeepsOneMessageASubject(t *testing.T) {
	url := startServer(t, &natsserver.Options{JetStream: true, StoreDir: t.TempDir()})
	bus := connectTo(t, natsbus.Config{URL: url})
	ctx := bounded(t)
	m := eventstest.Encode(eventstest.Posed("r1", 1, 0))
	if err := bus.Publish(ctx, m); err != nil {
		t.Fatal(err)
	}
	_, js := raw(t, url)
	const subject = "codea1.r1.problem.posed.s000001-q0000"
	if _, err := js.Publish(ctx, subject, nil); err == nil {
		t.Error("a second message on a subject was stored")
	}
	s, err := js.Stream(ctx, "codea1-r1")
	if err != nil {
		t.Fatal(err)
	}
	if s.DeleteMsg(ctx, 1) == nil || s.Purge(ctx) == nil {
		t.Error("an event was deleted")
	}
}

// A position of another stream is an error.
func TestPositionPastEnd(t *testing.T) {
	url := startServer(t, &natsserver.Options{JetStream: true, StoreDir: t.TempDir()})
	bus := connectTo(t, natsbus.Config{URL: url})
	ctx := bounded(t)
	if err := bus.Publish(ctx, posed(3)...); err != nil {
		t.Fatal(err)
	}
	r, err := bus.Read(ctx, events.ReadConfig{Run: "r1", From: "3"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bus.Read(ctx, events.ReadConfig{Run: "r1", From: "4"}); !errors.Is(err, events.ErrPosition) {
		t.Errorf("read: %v, want ErrPosition", err)
	}
	// The stream is replaced under an open reader.
	_, js := raw(t, url)
	if err := js.DeleteStream(ctx, "codea1-r1"); err != nil {
		t.Fatal(err)
	}
	if err := connectTo(t, natsbus.Config{URL: url}).Publish(ctx, posed(1)...); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Next(ctx); !errors.Is(err, events.ErrPosition) {
		t.Errorf("next: %v, want ErrPosition", err)
	}
}

// A reader continues after the server has deleted its consumer.
func TestReaderForgottenByTheServer(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	bus := server.Connect(t, natsbus.Config{})
	ctx := bounded(t)
	list := posed(600)
	if err := bus.Publish(ctx, list[:500]...); err != nil {
		t.Fatal(err)
	}
	r, err := bus.Read(ctx, events.ReadConfig{Run: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	_, js := raw(t, server.URL())
	for i, want := range list {
		if i == 500 {
			if err := bus.Publish(ctx, list[500:]...); err != nil {
				t.Fatal(err)
			}
		}
		if i%150 == 10 {
			s, err := js.Stream(ctx, "codea1-r1")
			if err != nil {
				t.Fatal(err)
			}
			for name := range s.ConsumerNames(ctx).Name() {
				if err := s.DeleteConsumer(ctx, name); err != nil {
					t.Fatal(err)
				}
			}
		}
		m, _, err := r.Next(ctx)
		if err != nil || m.ID != want.ID {
			t.Fatalf("event %d: %s, %v, want %s", i, m.Group, err, want.Group)
		}
	}
}

func TestConsumerDeleted(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	bus := server.Connect(t, natsbus.Config{})
	ctx := bounded(t)
	c, err := bus.Consume(ctx, events.ConsumeConfig{Run: "r1", Name: "worker", AckWait: time.Minute, MaxInFlight: 10})
	if err != nil {
		t.Fatal(err)
	}
	_, js := raw(t, server.URL())
	deleted := make(chan error, 1)
	go func() {
		time.Sleep(20 * time.Millisecond) // usually the Fetch waits by now
		deleted <- js.DeleteConsumer(ctx, "codea1-r1", "worker")
	}()
	if _, err := c.Fetch(ctx, 2, 0); err == nil || ctx.Err() != nil || errors.Is(err, events.ErrClosed) {
		t.Errorf("fetch: %v, want an error that names the consumer", err)
	}
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
}

// A full stream deletes nothing. Its publishers wait, for every limit, say so
// once and how to make room, and continue when there is room.
func TestFullStream(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]natsbus.Config{
		"Messages": {MaxStreamMessages: 2},
		"Bytes":    {MaxStreamBytes: 9 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			server := natstest.Start(t)
			ctx := bounded(t)
			var text syncedText
			limit.Logger = slog.New(slog.NewTextHandler(&text, nil))
			small := server.Connect(t, limit)
			list := posed(4)
			for i := range list {
				list[i].Encoding, list[i].Data = events.EncodingNone, make([]byte, 4<<20)
			}
			if err := small.Publish(ctx, list[:2]...); err != nil {
				t.Fatal(err)
			}
			published := make(chan error, 2)
			for range 2 {
				go func() { published <- small.Publish(ctx, list...) }()
			}
			for !strings.Contains(text.String(), "the server stores no events") {
				if ctx.Err() != nil {
					t.Fatalf("logged %q", text.String())
				}
				time.Sleep(5 * time.Millisecond)
			}
			// Consumers of a full stream still work.
			c, err := small.Consume(ctx, events.ConsumeConfig{Run: "r1", Name: "worker", AckWait: time.Minute, MaxInFlight: 1})
			if err != nil {
				t.Fatal(err)
			}
			handle := func() (id string) {
				t.Helper()
				got, err := c.Fetch(ctx, 1, 0)
				if err != nil {
					t.Fatal(err)
				}
				if err := got[0].Ack(ctx); err != nil {
					t.Fatal(err)
				}
				return got[0].Message().ID
			}
			if id := handle(); id != list[0].ID {
				t.Fatalf("event %s comes first, want %s", id, list[0].ID)
			}
			got, err := c.Fetch(ctx, 1, 0)
			if err != nil {
				t.Fatal(err)
			}
			// A dead letter is small: either there is room for it, or the
			// message stays.
			if err := got[0].DeadLetter(ctx, "x"); errors.Is(err, events.ErrFull) {
				err = got[0].Ack(ctx)
				if err != nil {
					t.Fatal(err)
				}
			} else if err != nil || name == "Messages" {
				t.Errorf("dead letter into a full stream: %v, want ErrFull", err)
			}
			large := server.Connect(t, natsbus.Config{})
			if err := large.Publish(ctx, list[0]); err != nil {
				t.Errorf("a stored event in a full stream: %v", err)
			}
			select {
			case err := <-published:
				t.Fatalf("published to a full stream: %v", err)
			default:
			}
			if err := large.EnsureStream(ctx, "r1"); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := <-published; err != nil {
					t.Error(err)
				}
			}
			// Groups have no order among each other.
			rest, want := []string{handle(), handle()}, []string{list[2].ID, list[3].ID}
			slices.Sort(rest)
			slices.Sort(want)
			if !slices.Equal(rest, want) {
				t.Errorf("events %v come last, want %v", rest, want)
			}
			said := text.String()
			for _, once := range []string{"the server stores no events", "codea1-r1", "--bus-stream-mib", "the server stores events again"} {
				if n := strings.Count(said, once); n != 1 {
					t.Errorf("%q is said %d times in %q", once, n, said)
				}
			}
		})
	}
}

// syncedText is a buffer that may be read while a logger writes to it.
type syncedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *syncedText) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *syncedText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestInProcess(t *testing.T) {
	s, err := natsbus.StartServer(natsbus.ServerConfig{StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	bus, err := natsbus.Connect(t.Context(), natsbus.Config{Server: s, URL: "nats://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	if err := bus.Publish(bounded(t), posed(100)...); err != nil {
		t.Error(err)
	}
}

// The bus sets every option that a run needs.
func TestDeclared(t *testing.T) {
	server := natstest.Start(t)
	bus := server.Connect(t, natsbus.Config{MaxStreamBytes: 64 << 20, MaxStreamMessages: 1000})
	ctx := bounded(t)
	if _, err := bus.Consume(ctx, events.ConsumeConfig{Run: "r1", Name: "worker", AckWait: time.Minute, MaxInFlight: 7}); err != nil {
		t.Fatal(err)
	}
	lease, err := bus.Lease(ctx, events.LeaseConfig{Run: "r1", Name: "log", Owner: "host:1", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close()
	_, js := raw(t, server.URL())
	declared := func(name string) jetstream.StreamConfig {
		s, err := js.Stream(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo().Config
	}
	run := declared("codea1-r1")
	if run.MaxBytes != 64<<20 || run.MaxMsgs != 1000 || run.MaxMsgsPerSubject != 1 || run.MaxMsgSize < events.MaxPayloadBytes ||
		run.MaxAge != 0 || run.Discard != jetstream.DiscardNew || run.Retention != jetstream.LimitsPolicy ||
		run.Storage != jetstream.FileStorage || run.Replicas != 1 {
		t.Errorf("stream of the run: %+v", run)
	}
	leases := declared("KV_codea1-r1")
	if leases.MaxBytes != 1<<20 || leases.MaxMsgsPerSubject != 1 || leases.MaxMsgSize != 4<<10 || leases.Discard != jetstream.DiscardNew ||
		leases.Storage != jetstream.FileStorage || leases.Replicas != 1 {
		t.Errorf("stream of the leases: %+v", leases)
	}
	consumer, err := js.Consumer(ctx, "codea1-r1", "worker")
	if err != nil {
		t.Fatal(err)
	}
	if c := consumer.CachedInfo().Config; c.AckPolicy != jetstream.AckExplicitPolicy || c.AckWait != time.Minute || c.MaxAckPending != 7 || c.MaxDeliver != -1 {
		t.Errorf("consumer: %+v", c)
	}
}
