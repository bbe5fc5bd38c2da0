package gpuworker_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"codea1/events"
	"codea1/gpuworker"
	"codea1/gpuworker/checkpoint"
)

// The follower finds checkpoints in a run directory that was moved, and rejects one
// with another SHA-256 there too.
func TestFollowerFindsMovedCheckpoints(t *testing.T) {
	t.Parallel()
	before, after := filepath.Join(t.TempDir(), "before"), filepath.Join(t.TempDir(), "after")
	messages := []events.Message{
		savedVersion(t, filepath.Join(before, "v000001"), events.RoleCode, 1),
		savedVersion(t, filepath.Join(before, "v000002"), events.RoleCode, 2),
	}
	if err := os.Rename(before, after); err != nil {
		t.Fatal(err)
	}
	bus := connect(t, server(t))
	publish(t, bus, messages[:1])
	f, err := gpuworker.NewFollower(gpuworker.FollowerConfig{
		Bus: bus, Run: "r1", Role: events.RoleCode, Sampler: newEngine(0), Checkpoints: after, CheckpointWait: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { failed <- f.Run(t.Context()) }()
	wait(t, f, 1)
	if err := os.WriteFile(filepath.Join(after, "v000002", "model.safetensors"), []byte("another"), 0o644); err != nil {
		t.Fatal(err)
	}
	publish(t, bus, messages[1:])
	var other *checkpoint.Error
	if err := <-failed; !errors.As(err, &other) || other.Dir != filepath.Join(after, "v000002") {
		t.Errorf("%v", err)
	}
}
