package sandbox

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestJobSocket talks over a job socket in the ways that children do: at once,
// in pieces with silence between them, and not at all.
func TestJobSocket(t *testing.T) {
	open := func(t *testing.T) (*jobSocket, *os.File) {
		ours, theirs, err := socketPair()
		if err != nil {
			t.Fatal(err)
		}
		socket, child := &jobSocket{fd: ours}, os.NewFile(uintptr(theirs), "child")
		t.Cleanup(func() { _, _ = socket.close(), child.Close() })
		return socket, child
	}
	send := func(t *testing.T, ctx context.Context, socket *jobSocket, job string, limit time.Duration) {
		if err := socket.send(ctx, []byte(job)); err != nil {
			t.Fatal(err)
		}
		if err := socket.setReadDeadline(time.Now().Add(limit)); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(t *testing.T, child *os.File, job string) {
		data := make([]byte, len(job))
		if _, err := io.ReadFull(child, data); err != nil || string(data) != job {
			t.Fatalf("%q, %v", data, err)
		}
	}
	t.Run("what it said before it ended stays", func(t *testing.T) {
		socket, child := open(t)
		send(t, t.Context(), socket, "job", time.Hour)
		hear(t, child, "job")
		if _, err := io.WriteString(child, "frames"); err != nil {
			t.Fatal(err)
		}
		if err := child.Close(); err != nil {
			t.Fatal(err)
		}
		if said, err := io.ReadAll(socket); err != nil || string(said) != "frames" {
			t.Errorf("%q, %v", said, err)
		}
	})
	t.Run("silence in between", func(t *testing.T) {
		socket, child := open(t)
		send(t, t.Context(), socket, "job", time.Hour)
		hear(t, child, "job")
		go func() {
			for range 3 {
				time.Sleep(3 * quietTime)
				_, _ = io.WriteString(child, "frame")
			}
			_ = child.Close()
		}()
		if said, err := io.ReadAll(socket); err != nil || string(said) != "frameframeframe" {
			t.Errorf("%q, %v", said, err)
		}
	})
	t.Run("more than the socket holds", func(t *testing.T) {
		socket, child := open(t)
		text := strings.Repeat("0123456789", 1<<20)
		go func() { // echoes
			data := make([]byte, len(text))
			if _, err := io.ReadFull(child, data); err == nil {
				_, _ = child.Write(data)
			}
			_ = child.Close()
		}()
		send(t, t.Context(), socket, text, time.Hour)
		if said, err := io.ReadAll(socket); err != nil || string(said) != text {
			t.Errorf("%d bytes, %v", len(said), err)
		}
	})
	t.Run("nothing in time", func(t *testing.T) {
		socket, _ := open(t)
		send(t, t.Context(), socket, "job", 5*quietTime)
		if n, err := socket.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		socket, _ := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		send(t, ctx, socket, "job", time.Hour)
		time.AfterFunc(5*quietTime, cancel)
		if n, err := socket.Read(make([]byte, 1)); err == nil || ctx.Err() == nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	t.Run("gone before it hears of the job", func(t *testing.T) {
		socket, child := open(t)
		if err := child.Close(); err != nil {
			t.Fatal(err)
		}
		if err := socket.send(t.Context(), []byte("job")); !errors.Is(err, syscall.EPIPE) {
			t.Error(err)
		}
	})
}
