package gpuworker_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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

// A trainer on a new machine takes its newest version from the store. With another optimizer's
// state than the one of policy.updated, or another tokenizer, it stops and names the copy. The
// trainer.json of the copy agrees with the other file.
func TestTrainerRefusesForeignFilesOfTheStore(t *testing.T) {
	t.Parallel()
	start, role := initial(t), events.RoleCode
	bus := connect(t, server(t))
	publish(t, bus, sampleRun.Messages())
	shared := t.TempDir()
	config := trainerConfig(bus, role, policies(t, role).Path, start)
	config.Remote = stored(shared, role)
	if err := run(t, config); err != nil {
		t.Fatal(err)
	}
	copies, err := filepath.Glob(filepath.Join(shared, "store", sampleRun.Name, "checkpoints", "code", fmt.Sprintf("v%06d-*", sampleRun.Steps)))
	if err != nil || len(copies) != 1 {
		t.Fatal(copies, err)
	}
	for _, file := range []string{"", "optimizer.safetensors", "tokenizer.json"} {
		store := t.TempDir()
		if file != "" {
			forgeCopy(t, copies[0], filepath.Join(store, "store", sampleRun.Name, "checkpoints", "code"), file)
		} else if err := os.CopyFS(filepath.Join(store, "store"), os.DirFS(filepath.Join(shared, "store"))); err != nil {
			t.Fatal(err)
		}
		config := trainerConfig(bus, role, policies(t, role).Path, start)
		config.Remote = stored(store, role)
		err := run(t, config)
		if refused := err != nil && strings.Contains(err.Error(), "not the files beside them") && strings.Contains(err.Error(), fmt.Sprintf("v%06d", sampleRun.Steps)); refused != (file != "") {
			t.Errorf("another %q: %v", file, err)
		}
	}
}

// forgeCopy writes a copy of a version below dir. In one file, a byte is another one.
func forgeCopy(t *testing.T, from, dir, file string) {
	t.Helper()
	forged := t.TempDir()
	if err := os.CopyFS(forged, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	change := func(name string, change func([]byte) []byte) {
		raw, err := os.ReadFile(filepath.Join(forged, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(forged, name), change(raw), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	change(file, func(raw []byte) []byte { raw[len(raw)-2] ^= 1; return raw })
	entries, err := os.ReadDir(forged)
	if err != nil {
		t.Fatal(err)
	}
	sums := func(with string) (lines []byte) {
		for _, e := range entries {
			if name := e.Name(); name != "SHA256SUMS" && (name != "trainer.json" || with == name) {
				raw, err := os.ReadFile(filepath.Join(forged, name))
				if err != nil {
					t.Fatal(err)
				}
				lines = fmt.Appendf(lines, "%x  %s\n", sha256.Sum256(raw), name)
			}
		}
		return lines
	}
	change("trainer.json", func(raw []byte) []byte {
		return regexp.MustCompile(`"files_sha256": "\w+"`).ReplaceAll(raw, fmt.Appendf(nil, `"files_sha256": "%x"`, sha256.Sum256(sums(""))))
	})
	text := sums("trainer.json")
	change("SHA256SUMS", func([]byte) []byte { return text })
	hash := sha256.Sum256(text)
	if err := os.CopyFS(filepath.Join(dir, fmt.Sprintf("v%06d-%x", sampleRun.Steps, hash[:8])), os.DirFS(forged)); err != nil {
		t.Fatal(err)
	}
}
