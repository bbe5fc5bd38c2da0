package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"codea1/events"
	"codea1/events/natsbus"
	"codea1/events/natsbus/natstest"
)

// broker is a server of a bus that a test can kill and start again without loss
// of messages.
type broker interface {
	// flags returns the flags of a process that joins the server as a stage or as
	// the operator.
	flags(t *testing.T, user string) []string
	// kill ends the server as a power cut would. It stays away until start.
	kill(t *testing.T)
	// start starts the server again.
	start(t *testing.T)
}

// restart makes an outage of that length.
func restart(t *testing.T, b broker, outage time.Duration) {
	t.Helper()
	b.kill(t)
	time.Sleep(outage)
	b.start(t)
}

// natsBroker is a NATS server with the configuration of compose.yaml, in a
// process of its own.
type natsBroker struct {
	args    []string
	port    string
	env     []string
	logins  string // the directory of the users' passwords; empty for a token
	command *exec.Cmd
}

// natsServer is the program nats-server of the tests.
func natsServer() {
	fail := func() { os.Exit(2) }
	options, err := natsserver.ConfigureOptions(flag.NewFlagSet("nats-server", flag.ContinueOnError), os.Args[1:], fail, fail, fail)
	if err != nil || options.Authorization != busToken && len(options.Users) == 0 {
		panic(fmt.Sprintf("the server wants token %q: %v", options.Authorization, err))
	}
	options.HTTPPort, options.NoLog = 0, true
	server, err := natsserver.NewServer(options)
	if err != nil {
		panic(err)
	}
	server.Start()
	server.WaitForShutdown()
}

func startNATS(t *testing.T) *natsBroker {
	t.Helper()
	b := newNATS(t)
	b.start(t)
	return b
}

// newNATS returns a server that is not started yet.
func newNATS(t *testing.T) *natsBroker {
	t.Helper()
	port := strconv.Itoa(natstest.FreePort(t))
	b := &natsBroker{args: append(composed(t, t.TempDir()), "--addr", "127.0.0.1", "--port", port), port: port}
	t.Cleanup(func() { b.kill(t) })
	return b
}

// operator is the user that is no stage.
const operator = "operator"

// startGuardedNATS starts a server with the configuration permissions.conf, in
// which every stage has a login of its own.
func startGuardedNATS(t *testing.T) *natsBroker {
	t.Helper()
	port := strconv.Itoa(natstest.FreePort(t))
	b := &natsBroker{
		args: []string{"-c", "events/natsbus/permissions.conf", "-sd", t.TempDir(), "--addr", "127.0.0.1", "--port", port},
		port: port,
	}
	b.logins, b.env = stageLogins(t)
	t.Cleanup(func() { b.kill(t) })
	b.start(t)
	return b
}

// stageLogins returns the directory of the passwords of all users of
// permissions.conf, and the environment of a server with this configuration.
func stageLogins(t *testing.T) (dir string, environment []string) {
	t.Helper()
	dir = t.TempDir()
	users := []string{operator, natsbus.TapUser}
	for _, s := range events.Stages {
		users = append(users, s.Name)
	}
	for _, user := range users {
		variable := "BUS_PASSWORD_" + strings.ToUpper(strings.ReplaceAll(user, "-", "_"))
		environment = append(environment, variable+"=secret-of-"+user)
		if err := os.WriteFile(filepath.Join(dir, user), []byte("secret-of-"+user+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, environment
}

func (b *natsBroker) url() string { return "nats://127.0.0.1:" + b.port }

// start implements broker.
func (b *natsBroker) start(t *testing.T) {
	t.Helper()
	b.command = exec.Command("nats-server", b.args...)
	b.command.Stderr = os.Stderr
	b.command.Env = append(os.Environ(), b.env...)
	if err := b.command.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server accepts connections", func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+b.port)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// kill implements broker.
func (b *natsBroker) kill(t *testing.T) {
	t.Helper()
	if b.command != nil {
		_ = b.command.Process.Kill()
		_ = b.command.Wait()
		b.command = nil
	}
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
func (b *natsBroker) flags(t *testing.T, user string) []string {
	t.Helper()
	if b.logins != "" {
		flags := []string{"--bus", b.url(), "--bus-user", user, "--bus-password-file", filepath.Join(b.logins, user)}
		if user != operator {
			flags = append(flags, "--bus-api-prefix", "CODEA1.API")
		}
		return flags
	}
	return []string{"--bus", b.url(), "--bus-token-file", b.tokenFile(t)}
}
