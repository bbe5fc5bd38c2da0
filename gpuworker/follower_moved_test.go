package gpuworker_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"codea1/events"
	"codea1/gpuworker/checkpoint"
)

// The follower finds checkpoints in a run directory that was moved, and rejects one
// with another SHA-256 there too.
func TestFollowerFindsMovedCheckpoints(t *testing.T) {
	t.Parallel()
	before, after := policies(t, events.RoleCode), policies(t, events.RoleCode)
	messages := []events.Message{savedVersion(t, before, 1), savedVersion(t, before, 2)}
	if err := errors.Join(os.MkdirAll(filepath.Dir(after.Path), 0o755), os.Rename(before.Path, after.Path)); err != nil {
		t.Fatal(err)
	}
	bus := connect(t, server(t))
	publish(t, bus, messages[:1])
	f := follower(t, bus, after, newEngine(0), time.Minute)
	failed := make(chan error, 1)
	go func() { failed <- f.Run(t.Context()) }()
	wait(t, f, 1)
	if err := os.WriteFile(filepath.Join(after.Dir(2), "model.safetensors"), []byte("another"), 0o644); err != nil {
		t.Fatal(err)
	}
	publish(t, bus, messages[1:])
	var other *checkpoint.Error
	if err := <-failed; !errors.As(err, &other) || other.Dir != after.Dir(2) {
		t.Errorf("%v", err)
	}
}
