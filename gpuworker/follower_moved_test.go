package gpuworker_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"codea1/events"
	"codea1/gpuworker"
	"codea1/gpuworker/enginetest"
)

// A run directory that was moved is followed there; what is not the checkpoint
// that the event names is refused there too.
func TestFollowerFindsMovedCheckpoints(t *testing.T) {
	t.Parallel()
	before, after := filepath.Join(t.TempDir(), "before"), filepath.Join(t.TempDir(), "after")
	messages := []events.Message{
		checkpoint(t, filepath.Join(before, "v000001"), events.RoleCode, 1),
		checkpoint(t, filepath.Join(before, "v000002"), events.RoleCode, 2),
	}
	if err := os.Rename(before, after); err != nil {
		t.Fatal(err)
	}
	bus := connect(t, server(t))
	publish(t, bus, messages[:1])
	f, err := gpuworker.NewFollower(gpuworker.FollowerConfig{
		Bus: bus, Run: "r1", Role: events.RoleCode, Sampler: enginetest.NewBigram(0), Checkpoints: after, CheckpointWait: time.Minute,
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
	var other *gpuworker.CheckpointError
	if err := <-failed; !errors.As(err, &other) || other.Dir != filepath.Join(after, "v000002") {
		t.Errorf("%v", err)
	}
}

func TestLocateCheckpoint(t *testing.T) {
	dir := t.TempDir()
	here, gone := filepath.Join(dir, "here", "v000001"), filepath.Join(dir, "gone", "v000001")
	checkpoint(t, here, events.RoleCode, 1)
	for _, tt := range []struct{ stated, folder, want string }{
		{here, filepath.Join(dir, "else"), here},
		{here, "", here},
		{gone, filepath.Dir(here), here},
		{gone, filepath.Join(dir, "else"), gone}, // to be waited for
		{gone, "", gone},
	} {
		uri, err := gpuworker.CheckpointURI(tt.stated)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := gpuworker.LocateCheckpoint(uri, tt.folder); err != nil || got != tt.want {
			t.Errorf("%s with %q: %s, %v; want %s", tt.stated, tt.folder, got, err, tt.want)
		}
	}
	if _, err := gpuworker.LocateCheckpoint("s3://bucket/key", dir); err == nil {
		t.Error("an object store is no directory")
	}
}
