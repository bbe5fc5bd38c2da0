package gpuworker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/gpuworker"
	"codea1/gpuworker/checkpoint"
	"codea1/gpuworker/tiny"
)

// policies returns a new folder of a role's checkpoints.
func policies(t *testing.T, role events.Role) checkpoint.Folder {
	return checkpoint.Folder{Path: filepath.Join(t.TempDir(), "checkpoints", string(role)), Run: "r1", Role: role}
}

// savedVersion saves an engine as a version and returns the event that names it.
func savedVersion(t *testing.T, folder checkpoint.Folder, version int) events.Message {
	t.Helper()
	dir := folder.Dir(version)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := newEngine(uint64(version)).Save(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	described, err := checkpoint.Describe(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return updated(t, folder.Role, version, described)
}

func updated(t *testing.T, role events.Role, version int, c events.Checkpoint) events.Message {
	t.Helper()
	group := fmt.Sprintf("%s-v%06d", role, version)
	m, err := events.Encode(events.New("r1", group, "trainer", time.Unix(1, 0), &events.PolicyUpdated{
		Role: role, Version: version, Step: version, Checkpoint: c,
	}))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func follower(t *testing.T, bus events.Bus, folder checkpoint.Folder, sampler gpuworker.Sampler, wait time.Duration) *gpuworker.Follower {
	t.Helper()
	f, err := gpuworker.NewFollower(gpuworker.FollowerConfig{
		Bus: bus, Run: "r1", Role: folder.Role, Sampler: sampler, Checkpoints: folder.Path, CheckpointWait: wait,
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func wait(t *testing.T, f gpuworker.RolloutPolicy, version int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := f.WaitVersion(ctx, version); err != nil {
		t.Fatalf("version %d: %v", version, err)
	}
}

var oneRequest = []gpuworker.SampleRequest{{Prompt: []int32{1, 2, 3}, Seeds: []uint64{5, 6}}}

var sampling = gpuworker.SamplingParams{Temperature: 1, TopP: 1, MaxTokens: 20}

func TestFollowerSamplesFromTheNewestVersion(t *testing.T) {
	bus := connect(t, server(t))
	folder := policies(t, events.RoleCode)
	publish(t, bus, []events.Message{
		savedVersion(t, folder, 1),
		savedVersion(t, policies(t, events.RoleTest), 5), // the other role's
	})
	f := follower(t, bus, folder, newEngine(0), time.Minute)
	stop := background(t, f.Run)
	for _, version := range []int{1, 2} {
		if version == 2 {
			publish(t, bus, []events.Message{savedVersion(t, folder, 2)})
		}
		wait(t, f, version)
		got, from, err := f.Sample(t.Context(), oneRequest, sampling)
		if err != nil || from != version {
			t.Fatalf("sampled from version %d, %v", from, err)
		}
		want, err := newEngine(uint64(version)).Sample(t.Context(), oneRequest, sampling)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("version %d: %s", version, d)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestFollowerSkipsMissingVersions(t *testing.T) {
	bus := connect(t, server(t))
	folder := policies(t, events.RoleCode)
	var messages []events.Message
	for version := 1; version <= 4; version++ {
		messages = append(messages, savedVersion(t, folder, version))
	}
	for old := 1; old <= 3; old++ {
		if err := os.RemoveAll(folder.Dir(old)); err != nil {
			t.Fatal(err)
		}
	}
	publish(t, bus, messages)
	f := follower(t, bus, folder, newEngine(0), time.Minute)
	background(t, f.Run)
	wait(t, f, 4)
}

func TestFollowerWaitsForAMissingCheckpoint(t *testing.T) {
	bus := connect(t, server(t))
	folder := policies(t, events.RoleCode)
	publish(t, bus, []events.Message{savedVersion(t, folder, 1)})
	dir := folder.Dir(1)
	aside := dir + "-aside"
	if err := os.Rename(dir, aside); err != nil {
		t.Fatal(err)
	}
	f := follower(t, bus, folder, newEngine(0), time.Minute)
	background(t, f.Run)
	if v := f.Version(); v != 0 {
		t.Fatalf("version %d of a missing checkpoint is loaded", v)
	}
	if err := os.Rename(aside, dir); err != nil {
		t.Fatal(err)
	}
	wait(t, f, 1)
}

func TestFollowerRejectsOtherCheckpoints(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, folder checkpoint.Folder) events.Message
		needs string
	}{
		{"other weights", func(t *testing.T, folder checkpoint.Folder) events.Message {
			m := savedVersion(t, folder, 1)
			savedVersion(t, folder, 2)
			if err := errors.Join(os.RemoveAll(folder.Dir(1)), os.Rename(folder.Dir(2), folder.Dir(1))); err != nil {
				t.Fatal(err)
			}
			return m
		}, "model.safetensors has SHA-256"},
		{"a missing directory", func(t *testing.T, folder checkpoint.Folder) events.Message {
			m := savedVersion(t, folder, 1)
			if err := os.RemoveAll(folder.Dir(1)); err != nil {
				t.Fatal(err)
			}
			return m
		}, "no such file or directory; restore it"},
		{"weights of another engine", func(t *testing.T, folder checkpoint.Folder) events.Message {
			dir := folder.Dir(1)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "model.safetensors"), []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
			described, err := checkpoint.Describe(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			return updated(t, events.RoleCode, 1, described)
		}, "engine: load weights"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bus := connect(t, server(t))
			folder := policies(t, events.RoleCode)
			publish(t, bus, []events.Message{c.spoil(t, folder)})
			f := follower(t, bus, folder, newEngine(0), time.Millisecond)
			err := f.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.needs) || !strings.Contains(err.Error(), "policy follower code") {
				t.Errorf("have %v, want %q", err, c.needs)
			}
			if f.Version() != 0 {
				t.Errorf("version %d is loaded", f.Version())
			}
		})
	}
}

// turns is a sampler that fails the test if two calls overlap.
type turns struct {
	*tiny.Engine
	t      *testing.T
	inside atomic.Int32
	loaded atomic.Int32
	inCall chan struct{} // receives a value when a Sample starts
	goOn   chan struct{} // a value lets that Sample continue
}

func (s *turns) enter() func() {
	if s.inside.Add(1) != 1 {
		s.t.Error("two calls of the engine at the same time")
	}
	return func() { s.inside.Add(-1) }
}

func (s *turns) Sample(ctx context.Context, r []gpuworker.SampleRequest, p gpuworker.SamplingParams) ([][]events.Completion, error) {
	defer s.enter()()
	s.inCall <- struct{}{}
	<-s.goOn
	return s.Engine.Sample(ctx, r, p)
}

func (s *turns) LoadWeights(ctx context.Context, dir string) error {
	defer s.enter()()
	s.loaded.Add(1)
	return s.Engine.LoadWeights(ctx, dir)
}

func TestFollowerLoadsBetweenSamples(t *testing.T) {
	bus := connect(t, server(t))
	s := &turns{Engine: newEngine(0), t: t, inCall: make(chan struct{}), goOn: make(chan struct{})}
	folder := policies(t, events.RoleCode)
	f := follower(t, bus, folder, s, time.Minute)
	background(t, f.Run)

	var samples sync.WaitGroup
	versions := make(chan int, 2)
	for range 2 {
		samples.Go(func() {
			_, version, err := f.Sample(t.Context(), oneRequest, sampling)
			if err != nil {
				t.Error(err)
			}
			versions <- version
		})
	}
	<-s.inCall
	publish(t, bus, []events.Message{savedVersion(t, folder, 1)})
	// A waiting call returns when its context ends.
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	if _, _, err := f.Sample(ctx, oneRequest, sampling); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a waiting Sample returned %v", err)
	}
	cancel()
	if s.loaded.Load() != 0 {
		t.Error("weights were replaced under a running Sample")
	}
	s.goOn <- struct{}{}
	if v := <-versions; v != 0 {
		t.Errorf("the Sample that was running says version %d", v)
	}
	<-s.inCall
	s.goOn <- struct{}{}
	samples.Wait()
	wait(t, f, 1)
}
