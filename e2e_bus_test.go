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

// broker is a server of a bus that a test can restart: what it has stored
// stays.
type broker interface {
	// flags join it.
	flags(t *testing.T) []string
	restart(t *testing.T)
}

// natsBroker is a NATS server, configured as that of compose.yaml.
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

// tokenFile returns a file with what the server wants to be shown.
func (b *natsBroker) tokenFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bus_token")
	if err := os.WriteFile(path, []byte(busToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// flags returns those that join the server.
func (b *natsBroker) flags(t *testing.T) []string {
	t.Helper()
	return []string{"--bus", b.server.ClientURL(), "--bus-token-file", b.tokenFile(t)}
}

// A training uses the server of compose.yaml as it does its own.
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
