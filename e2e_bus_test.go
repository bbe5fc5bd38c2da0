package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"codea1/events"
	"codea1/events/rundir"
)

// broker is a server of a bus that a test can restart without loss of messages.
type broker interface {
	// flags returns the flags of a process that joins the server.
	flags(t *testing.T) []string
	restart(t *testing.T)
}

// natsBroker is a NATS server with the configuration of compose.yaml.
type natsBroker struct {
	options *natsserver.Options
	server  *natsserver.Server
}

func startNATS(t *testing.T) *natsBroker {
	t.Helper()
	b := &natsBroker{options: composed(t, t.TempDir())}
	b.start(t)
	b.options.Port = b.server.Addr().(*net.TCPAddr).Port
	t.Cleanup(b.stop)
	return b
}

func (b *natsBroker) start(t *testing.T) {
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

func (b *natsBroker) stop() {
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

func (b *natsBroker) restart(t *testing.T) {
	t.Helper()
	b.stop()
	b.start(t)
}

// tokenFile returns a file with the token of the server.
func (b *natsBroker) tokenFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bus_token")
	if err := os.WriteFile(path, []byte(busToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// flags implements broker.
func (b *natsBroker) flags(t *testing.T) []string {
	t.Helper()
	return []string{"--bus", b.server.ClientURL(), "--bus-token-file", b.tokenFile(t)}
}

// A training uses the server of compose.yaml in place of the embedded one.
func TestTrainingOnAnotherServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := startNATS(t)
	must(t, dir, append(train("--steps", "2", "--name", "r"), b.flags(t)...)...)
	if h := read(t, runPath(dir, "r"), 2); h.ended() != events.RunCompleted {
		t.Errorf("ended with %q", h.ended())
	}
	if _, err := os.Stat(rundir.NATS(runPath(dir, "r"))); err == nil {
		t.Error("the run has a server's store of its own")
	}
}
