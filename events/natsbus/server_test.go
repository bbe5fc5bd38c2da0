package natsbus_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/eventstest"
	"codea1/events/natsbus"
	"codea1/events/natsbus/natstest"
)

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func posed(n int) []events.Message {
	list := make([]events.Message, n)
	for i := range list {
		list[i] = eventstest.Encode(eventstest.Posed("r1", 1, i))
	}
	return list
}

// An error of StartServer is one line that names the problem.
func wantSentence(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than a sentence: %q", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %q", err, part)
		}
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	_, err = natsbus.StartServer(natsbus.ServerConfig{StoreDir: t.TempDir(), Port: port})
	wantSentence(t, err, fmt.Sprint(port), "--port")
}

func TestAnyPort(t *testing.T) {
	// At most one of two servers gets port 4222.
	for range 2 {
		s, err := natsbus.StartServer(natsbus.ServerConfig{StoreDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Shutdown()
		bus, err := natsbus.Connect(t.Context(), natsbus.Config{URL: s.URL(natsbus.PipelineUser)})
		if err != nil {
			t.Fatal(err)
		}
		defer bus.Close()
		if err := bus.Publish(bounded(t), posed(1)...); err != nil {
			t.Error(err)
		}
	}
}

func TestStoreErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	start := func(config natsbus.ServerConfig) error {
		s, err := natsbus.StartServer(config)
		if err == nil {
			s.Shutdown()
		}
		return err
	}
	wantSentence(t, start(natsbus.ServerConfig{}), "store directory")
	wantSentence(t, start(natsbus.ServerConfig{StoreDir: file}), file)
	wantSentence(t, start(natsbus.ServerConfig{StoreDir: t.TempDir(), Port: 70000}), "70000")
	// A file in place of the server's directory.
	blocked := t.TempDir()
	if err := os.WriteFile(filepath.Join(blocked, "jetstream"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	wantSentence(t, start(natsbus.ServerConfig{StoreDir: blocked}), blocked)
}

func TestStoreBelongsToOneServer(t *testing.T) {
	first := natstest.Start(t)
	_, err := natsbus.StartServer(natsbus.ServerConfig{StoreDir: first.StoreDir()})
	wantSentence(t, err, first.StoreDir(), "in use")
	first.Stop()
	again, err := natsbus.StartServer(natsbus.ServerConfig{StoreDir: first.StoreDir()})
	if err != nil {
		t.Fatal(err)
	}
	again.Shutdown()
	again.Shutdown()
}

// If the disk is full, Wait returns an error, and confirmed events are kept.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=12m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	config := natsbus.ServerConfig{StoreDir: dir}
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 13<<20), 0o644); err == nil {
		t.Fatal("the file system is not full")
	}
	_, err := natsbus.StartServer(config)
	wantSentence(t, err, dir)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}

	s, err := natsbus.StartServer(config)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	bus, err := natsbus.Connect(t.Context(), natsbus.Config{Server: s})
	if err != nil {
		t.Fatal(err)
	}
	ctx := bounded(t)
	failed := make(chan error, 1)
	go func() { failed <- s.Wait(ctx) }()
	var kept []events.Message
	publishing, stop := context.WithCancel(ctx)
	var sentence error
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		sentence = <-failed
		stop() // the server does not answer any more
	}()
	for i := 0; ; i++ {
		m := eventstest.Encode(eventstest.Posed("r1", 1, i))
		m.Encoding, m.Data = events.EncodingNone, make([]byte, 1<<20)
		if bus.Publish(publishing, m) != nil {
			break
		}
		kept = append(kept, m)
	}
	<-watched
	wantSentence(t, sentence, dir, "disk space")
	bus.Close()
	s.Shutdown()

	// With room again, the confirmed events are there.
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	if s, err = natsbus.StartServer(config); err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	if bus, err = natsbus.Connect(t.Context(), natsbus.Config{Server: s}); err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	r, err := bus.Read(ctx, events.ReadConfig{Run: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range kept {
		m, _, err := r.Next(ctx)
		if err != nil || m.ID != want.ID {
			t.Fatalf("event %d of %d: %s, %v", i, len(kept), m.Group, err)
		}
	}
}

// TestServerProcess is the server that TestKill kills.
func TestServerProcess(t *testing.T) {
	dir := os.Getenv("CODEA1_SERVER_STORE")
	if dir == "" {
		t.Skip("not asked to be a server")
	}
	s, err := natsbus.StartServer(natsbus.ServerConfig{StoreDir: dir, SyncInterval: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	fmt.Println("URL", s.URL(natsbus.PipelineUser))
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent has ended
}

// Confirmed events survive kill -9, and are refused as duplicates afterwards.
func TestKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx := bounded(t)
	list := posed(2000)
	confirmed := 0
	for range 2 {
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestServerProcess$", "-test.v")
		cmd.Env = append(os.Environ(), "CODEA1_SERVER_STORE="+dir)
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer stdin.Close()
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var url string
		for url == "" {
			var word string
			if _, err := fmt.Fscan(stdout, &word); err != nil {
				t.Fatalf("the server did not start: %v", err)
			}
			if word == "URL" {
				fmt.Fscan(stdout, &url)
			}
		}
		bus, err := natsbus.Connect(ctx, natsbus.Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		killed := make(chan struct{})
		running, stop := context.WithCancel(ctx)
		go func() {
			defer close(killed)
			time.Sleep(100 * time.Millisecond)
			_ = cmd.Process.Kill()
			stop()
		}()
		for i, m := range list {
			if bus.Publish(running, m) != nil {
				break
			}
			confirmed = max(confirmed, i+1)
		}
		<-killed
		_ = cmd.Wait()
		bus.Close()
	}
	t.Logf("%d events confirmed before the second kill", confirmed)
	s, err := natsbus.StartServer(natsbus.ServerConfig{StoreDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	bus, err := natsbus.Connect(ctx, natsbus.Config{Server: s})
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	if err := bus.Publish(ctx, list[:min(len(list), events.MaxPublishBatch)]...); err != nil {
		t.Fatal(err)
	}
	r, err := bus.Read(ctx, events.ReadConfig{Run: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, m := range list[:max(confirmed, events.MaxPublishBatch)] {
		stored, _, err := r.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got, want = append(got, stored.ID), append(want, m.ID)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("after two kills (-want +got):\n%s", d)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	s, err := natsbus.StartServer(natsbus.ServerConfig{StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Wait(ctx); err != nil {
		t.Error(err)
	}
}

// The begin and the end of an outage are logged, and not each try.
func TestOutageIsLoggedOnce(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	log := bustest.NewLines()
	bus := server.Connect(t, natsbus.Config{Logger: slog.New(log)})
	ctx := bounded(t)
	for _, m := range posed(3) {
		server.Stop()
		published := make(chan error, 4)
		for range cap(published) {
			go func() { published <- bus.Publish(ctx, m) }()
		}
		time.Sleep(300 * time.Millisecond) // some tries to reconnect
		server.Restart()
		for range cap(published) {
			if err := <-published; err != nil {
				t.Error(err)
			}
		}
	}
	var got []string
	for range 6 {
		select {
		case line := <-log.C:
			got = append(got, line)
		case <-ctx.Done():
			t.Fatalf("logged %q", got)
		}
	}
	const lost, back = "WARN nats: connection lost, reconnecting", "WARN nats: reconnected"
	if d := cmp.Diff([]string{lost, back, lost, back, lost, back}, got); d != "" {
		t.Errorf("logged (-want +got):\n%s", d)
	}
}

func TestConnectErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]natsbus.Config{
		"TwoIdentities":    {Token: "t", User: "u"},
		"PasswordAlone":    {Password: "p"},
		"CertificateAlone": {CertFile: "c.pem"},
		"SmallStream":      {MaxStreamBytes: 1},
		"Replicas":         {Replicas: 7},
		"NoNKeyFile":       {NKeyFile: "/does/not/exist"},
	} {
		if _, err := natsbus.Connect(t.Context(), c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	_, err := natsbus.Connect(t.Context(), natsbus.Config{URL: "nats://127.0.0.1:1"})
	wantSentence(t, err, "nats://127.0.0.1:1")
	for _, url := range []string{"nats://u:secret@127.0.0.1:1,nats://secret@127.0.0.1:2", "nats://u:secret%zz@127.0.0.1:1", "u:secret@127.0.0.1:1"} {
		_, err := natsbus.Connect(t.Context(), natsbus.Config{URL: url, ConnectTimeout: 100 * time.Millisecond})
		wantSentence(t, err, "127.0.0.1:1")
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("a password is told: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := natsbus.Connect(ctx, natsbus.Config{URL: "nats://127.0.0.1:1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("connect: %v, want context.Canceled", err)
	}
}
