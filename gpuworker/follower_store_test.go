package gpuworker_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"codea1/events"
	"codea1/gpuworker"
	"codea1/gpuworker/checkpoint"
)

// A replica on a machine without the run directory loads the versions of the store. One
// that falls behind takes the newest: those between are removed. After a damaged
// version it waits for the next one.
func TestFollowerLoadsFromTheStore(t *testing.T) {
	bus := connect(t, server(t))
	folder := policies(t, events.RoleCode)
	shared := t.TempDir()
	remote := func() *checkpoint.Remote {
		r := stored(shared, events.RoleCode)
		r.Run = "r1"
		r.Cache = filepath.Join(t.TempDir(), "cache")
		return r
	}
	version := func(n int) {
		t.Helper()
		record := &checkpoint.Record{Format: checkpoint.Format, Run: "r1", Role: events.RoleCode, Version: n, Step: n}
		err := folder.Write(t.Context(), record, func(dir string) error { return newEngine(uint64(n)).Save(t.Context(), dir) })
		if err == nil {
			err = remote().Upload(t.Context(), n, folder.Dir(n))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	named := func(n int) events.Message {
		described, err := checkpoint.Describe(t.Context(), folder.Dir(n))
		if err != nil {
			t.Fatal(err)
		}
		return updated(t, events.RoleCode, n, described)
	}
	for n := 1; n <= 3; n++ {
		version(n)
	}
	remote().Retain(t.Context(), 1, 0) // 1 and 2 are removed
	publish(t, bus, []events.Message{named(1), named(2), named(3)})
	f, err := gpuworker.NewFollower(gpuworker.FollowerConfig{
		Bus: bus, Run: "r1", Role: events.RoleCode, Sampler: newEngine(0), Remote: remote(),
		Checkpoints: filepath.Join(t.TempDir(), "checkpoints", "code"), CheckpointWait: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	stop := background(t, f.Run)
	wait(t, f, 3)

	version(4)
	objects, err := filepath.Glob(filepath.Join(shared, "store/r1/checkpoints/code/v000004-*/model.safetensors"))
	if err != nil || len(objects) != 1 {
		t.Fatal(objects, err)
	}
	if err := os.Truncate(objects[0], 100); err != nil {
		t.Fatal(err)
	}
	publish(t, bus, []events.Message{named(4)})
	version(5)
	publish(t, bus, []events.Message{named(5)})
	wait(t, f, 5)
	if err := stop(); err != nil {
		t.Error(err)
	}
}
