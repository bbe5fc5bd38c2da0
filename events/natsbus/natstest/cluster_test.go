package natstest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/natsbus"
)

func TestMain(m *testing.M) {
	bustest.Main(m, func(ctx context.Context, address string) (events.Broker, error) {
		return natsbus.Connect(ctx, natsbus.Config{URL: address, Replicas: Nodes})
	})
}

// TestConformanceCluster stores every run on three nodes, and stops the one
// that leads it.
func TestConformanceCluster(t *testing.T) {
	c := StartCluster(t)
	t.Run("Replicas", func(t *testing.T) { replicas(t, c) })
	// The other tests of the suite run on one node in package natsbus.
	only := []string{"SameEventFromManyPublishers", "LoseNode"}
	if os.Getenv("CODEA1_TEST_THOROUGH") == "1" {
		only = nil
	}
	bustest.Run(t, bustest.Features{
		Only: only,
		LoseNode: func(_ testing.TB, run string) func() {
			i := c.Leader(run)
			c.Stop(i)
			return func() { c.Restart(i) }
		},
		Address:              c.URL(),
		RefusesContradiction: true,
	}, func(t testing.TB) events.Broker {
		return c.Connect(t, natsbus.Config{})
	})
}

// A run and its leases are stored on the configured number of nodes.
func replicas(t *testing.T, c *Cluster) {
	bus := c.Connect(t, natsbus.Config{})
	lease, err := bus.Lease(t.Context(), events.LeaseConfig{Run: "r1", Name: "log", Owner: "host:1", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close()
	if err := bus.EnsureStream(t.Context(), "r1"); err != nil {
		t.Fatal(err)
	}
	// Another process, which is not told the number, opens the run at the same time.
	single := connect(t, natsbus.Config{URL: c.URL()})
	names := []string{"codea1-r1", "KV_codea1-r1"}
	for i := range 4 {
		run := fmt.Sprintf("both%d", i)
		names = append(names, "codea1-"+run)
		var opening sync.WaitGroup
		opening.Go(func() {
			if r, err := single.Read(t.Context(), events.ReadConfig{Run: run}); err != nil {
				t.Error(err)
			} else if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
		if err := bus.EnsureStream(t.Context(), run); err != nil {
			t.Error(err)
		}
		opening.Wait()
	}
	conn, err := nats.Connect(c.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		s, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if n := s.CachedInfo().Config.Replicas; n != Nodes {
			t.Errorf("%s has %d replicas, want %d", name, n, Nodes)
		}
	}
}
