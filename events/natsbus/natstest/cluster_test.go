package natstest_test

import (
	"context"
	"testing"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/natsbus"
	"codea1/events/natsbus/natstest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	bustest.Owner(func(ctx context.Context, address string) (events.Broker, error) {
		return natsbus.Connect(ctx, natsbus.Config{URL: address, Replicas: natstest.Nodes})
	})
	goleak.VerifyTestMain(m)
}

// TestConformanceCluster keeps every run on three nodes, and takes away the one
// that leads it.
func TestConformanceCluster(t *testing.T) {
	c := natstest.StartCluster(t)
	bustest.Run(t, bustest.Features{
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
