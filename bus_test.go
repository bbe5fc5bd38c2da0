package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"codea1/events"
)

// broker is a NATS server, configured as that of compose.yaml, which keeps what
// it has stored when it is restarted.
type broker struct {
	options *natsserver.Options
	server  *natsserver.Server
}

func startBroker(t *testing.T) *broker {
	t.Helper()
	b := &broker{options: composed(t, t.TempDir())}
	b.start(t)
	b.options.Port = b.server.Addr().(*net.TCPAddr).Port
	t.Cleanup(b.stop)
	return b
}

func (b *broker) start(t *testing.T) {
	t.Helper()
	server, err := natsserver.NewServer(b.options.Clone())
	if err != nil {
		t.Fatal(err)
	}
	b.server = server
	server.Start()
	if !server.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
}

func (b *broker) stop() {
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

func (b *broker) restart(t *testing.T) {
	t.Helper()
	b.stop()
	b.start(t)
}

// tokenFile returns a file with what the server wants to be shown.
func (b *broker) tokenFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bus_token")
	if err := os.WriteFile(path, []byte(busToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// flags returns those that join the server.
func (b *broker) flags(t *testing.T) []string {
	t.Helper()
	return []string{"--bus", b.server.ClientURL(), "--bus-token-file", b.tokenFile(t)}
}

// tap calls see with the number of every event of the run, from 1, until the
// crew has ended. It outlives its server.
func (b *broker) tap(t *testing.T, ended <-chan struct{}, see func(n int, m *events.Message)) {
	t.Helper()
	conn, err := nats.Connect(b.server.ClientURL(), nats.Token(busToken), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	messages := make(chan *nats.Msg, 4096)
	if _, err := conn.ChanSubscribe("codea1.r.>", messages); err != nil {
		t.Fatal(err)
	}
	for n := 1; ; n++ {
		select {
		case msg := <-messages:
			m, err := events.ParseMessage("ce-", msg.Header.Get, msg.Data)
			if err != nil {
				t.Fatalf("%s: %v", msg.Subject, err)
			}
			see(n, &m)
		case <-ended:
			return
		}
	}
}

// A training uses the server of compose.yaml as it does its own.
func TestTrainingOnAnotherServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := startBroker(t)
	must(t, dir, append(train("--steps", "2", "--name", "r"), b.flags(t)...)...)
	if h := read(t, runPath(dir, "r"), 2); h.ended() != events.RunCompleted {
		t.Errorf("ended with %q", h.ended())
	}
	if _, err := os.Stat(natsPath(runPath(dir, "r"))); err == nil {
		t.Error("the run has a server's store of its own")
	}
}
