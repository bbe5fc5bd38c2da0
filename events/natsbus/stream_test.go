package natsbus_test

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"codea1/events/bustest"
	"codea1/events/natsbus"
)

// small returns the address of a server with that much storage.
func small(t *testing.T, bytes int64) string {
	return startServer(t, &natsserver.Options{
		JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: bytes, MaxPayload: 16 << 20,
	})
}

func connectTo(t *testing.T, config natsbus.Config) *natsbus.Bus {
	t.Helper()
	bus, err := natsbus.Connect(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bus.Close() })
	return bus
}

func limit(t *testing.T, url, run string) int64 {
	t.Helper()
	_, js := raw(t, url)
	s, err := js.Stream(t.Context(), "codea1-"+run)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().Config.MaxBytes
}

// A stream without a configured limit takes the storage that other streams
// leave.
func TestStreamFitsTheServer(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	url := small(t, 13*gib)
	log := bustest.NewLines()
	bus := connectTo(t, natsbus.Config{URL: url, Logger: slog.New(log)})
	for i, want := range []int64{8 * gib, 4 * gib, gib} {
		run := fmt.Sprint("r", i)
		for range 2 { // the second time it exists
			if err := bus.EnsureStream(bounded(t), run); err != nil {
				t.Fatal(err)
			}
		}
		if got := limit(t, url, run); got != want {
			t.Errorf("stream %d is bounded by %d bytes, want %d", i, got, want)
		}
		if line := <-log.C; line != "WARN nats: the server has no room for the default stream limit" {
			t.Errorf("logged %q", line)
		}
	}
	wantSentence(t, bus.EnsureStream(bounded(t), "r3"), `"r3"`, "no room", fmt.Sprint(gib), "--bus-stream-mib")
}

// A configured limit is applied or refused.
func TestGivenStreamLimit(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	url := small(t, 100*mib)
	config := natsbus.Config{URL: url, MaxStreamBytes: 64 * mib}
	if err := connectTo(t, config).EnsureStream(bounded(t), "r1"); err != nil {
		t.Fatal(err)
	}
	if got := limit(t, url, "r1"); got != 64*mib {
		t.Errorf("the stream is bounded by %d bytes, want %d", got, 64*mib)
	}
	config.MaxStreamBytes = 128 * mib
	larger := connectTo(t, config)
	wantSentence(t, larger.EnsureStream(bounded(t), "r1"), `"r1"`, "no room", fmt.Sprint(64*mib))
	wantSentence(t, larger.EnsureStream(bounded(t), "r2"), `"r2"`, "no room", fmt.Sprint(128*mib))
}

// Processes of one run that start together all succeed, though the server has
// no room for a stream of each.
func TestStreamOfManyProcesses(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, given := range []int64{0, 64 * mib} {
		url := small(t, max(given*3/2, 3<<30))
		var starting sync.WaitGroup
		for i := range 8 {
			bus := connectTo(t, natsbus.Config{URL: url, MaxStreamBytes: given})
			starting.Go(func() {
				if err := bus.Publish(bounded(t), posed(8)[i]); err != nil {
					t.Error(err)
				}
			})
		}
		starting.Wait()
	}
}
