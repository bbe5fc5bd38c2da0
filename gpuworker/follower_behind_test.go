package gpuworker_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/gpuworker/tiny"
)

// slow is a sampler that loads a version when it is permitted to.
type slow struct {
	*tiny.Engine
	began  chan string // the directory that is about to be loaded
	permit chan struct{}
}

func (s *slow) LoadWeights(ctx context.Context, dir string) error {
	s.began <- filepath.Base(dir)
	<-s.permit
	return s.Engine.LoadWeights(ctx, dir)
}

// asked is a bus with readers that report each request for the next message.
type asked struct {
	events.Bus
	next chan struct{}
}

func (b asked) Read(ctx context.Context, config events.ReadConfig) (events.Reader, error) {
	r, err := b.Bus.Read(ctx, config)
	return askedReader{r, b.next}, err
}

type askedReader struct {
	events.Reader
	next chan struct{}
}

func (r askedReader) Next(ctx context.Context) (events.Message, events.Position, error) {
	select {
	case r.next <- struct{}{}:
	case <-ctx.Done():
	}
	return r.Reader.Next(ctx)
}

// A replica that is behind loads the newest version next, and none between. Every group
// that asks for an earlier one is sampled with that version: a plan names the earliest
// version within the staleness bound.
func TestFollowerBehindSkipsToTheNewestVersion(t *testing.T) {
	bus := connect(t, server(t))
	folder := policies(t, events.RoleCode)
	s := &slow{Engine: newEngine(0), began: make(chan string), permit: make(chan struct{})}
	listened := asked{bus, make(chan struct{})}
	f := follower(t, listened, folder, s, time.Minute)
	background(t, f.Run)
	<-listened.next
	publish(t, bus, []events.Message{savedVersion(t, folder, 1)})
	loaded := []string{<-s.began}
	for version := 2; version <= 5; version++ {
		publish(t, bus, []events.Message{savedVersion(t, folder, version)})
		<-listened.next // it has taken the version before
	}
	<-listened.next // it has taken the newest one
	s.permit <- struct{}{}
	loaded = append(loaded, <-s.began)
	s.permit <- struct{}{}
	wait(t, f, 3)
	if diff := cmp.Diff([]string{"v000001", "v000005"}, loaded); diff != "" || f.Version() != 5 {
		t.Errorf("v%d samples, and these were loaded:\n%s", f.Version(), diff)
	}
}
