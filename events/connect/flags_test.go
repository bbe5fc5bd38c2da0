package connect_test

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"codea1/events/connect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A wrong flag is named in the error, and no error contains a secret.
func TestOpenRefuses(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags connect.Flags
		want  string
	}{
		{connect.Flags{URL: ""}, `--bus: "" is not the address of a bus`},
		{connect.Flags{URL: connect.Embedded}, `--bus: "embedded" is not the address of a bus`},
		{connect.Flags{URL: "http://127.0.0.1:1"}, `--bus: "http://127.0.0.1:1" is not the address of a bus; want nats://HOST:PORT`},
		{connect.Flags{URL: "u:secret@127.0.0.1:9092"}, `--bus: "127.0.0.1:9092" is not the address of a bus`},
		{connect.Flags{URL: "kafka://127.0.0.1"}, `--bus: "127.0.0.1" is not the address of a broker`},
		{connect.Flags{URL: "kafka://u:secret@127.0.0.1:1"}, "--bus: a Kafka address has no user; use --bus-user"},
		{connect.Flags{URL: "kafka://127.0.0.1:1", PasswordFile: "none"}, "--bus-password-file: open none: no such file"},
		{connect.Flags{URL: "nats://127.0.0.1:1", TokenFile: empty}, "--bus-token-file: " + empty + " is empty"},
	} {
		_, err := c.flags.Open(t.Context(), "test", slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", c.flags.URL, err, c.want)
		}
	}
}

// A bus is reachable if one of its servers accepts connections. The error repeats no
// secret.
func TestCheckReachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	open := listener.Addr().String()
	for _, scheme := range []string{"nats", "tls", "ws", "kafka"} {
		closed := scheme + "://127.0.0.1:1"
		err := (&connect.Flags{URL: closed}).CheckReachable(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), "--bus: no server answers at "+closed) {
			t.Errorf("%s: %v", closed, err)
		}
		second := "," + scheme + "://" + open
		if scheme == "kafka" {
			second = "," + open
		}
		if err := (&connect.Flags{URL: closed + second}).CheckReachable(t.Context()); err != nil {
			t.Errorf("%s: %v", closed+second, err)
		}
	}
	err = (&connect.Flags{URL: "nats://user:secret@127.0.0.1:1"}).CheckReachable(t.Context())
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("with a login: %v", err)
	}
	if err := (&connect.Flags{URL: "nonsense"}).CheckReachable(t.Context()); err == nil || !strings.Contains(err.Error(), "is not the address of a bus") {
		t.Errorf("no address: %v", err)
	}
}

// The embedded bus has the stream of its run, with the limit of the flag.
func TestOpenEmbedded(t *testing.T) {
	flags := connect.Flags{URL: connect.Embedded, StreamMiB: 16}
	server, bus, err := flags.OpenEmbedded(t.Context(), "night", t.TempDir(), 0, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	defer bus.Close()
	if has, err := bus.HasRun(t.Context(), "night"); err != nil || !has {
		t.Errorf("the run exists: %v, %v", has, err)
	}
	flags.StreamMiB = 32
	if err := flags.ApplyStreamLimit(t.Context(), bus, "night"); err != nil {
		t.Error(err)
	}
}
