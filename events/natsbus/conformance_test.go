package natsbus_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/natsbus"
	"codea1/events/natsbus/natstest"
)

func TestMain(m *testing.M) {
	bustest.Owner(func(ctx context.Context, address string) (events.Broker, error) {
		return natsbus.Connect(ctx, natsbus.Config{URL: address})
	})
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) {
	server := natstest.Start(t)
	bustest.Run(t, bustest.Features{
		Restart:              func(testing.TB) { server.Restart() },
		Address:              server.URL(),
		RefusesContradiction: true,
	}, func(t testing.TB) events.Broker {
		return server.Connect(t, natsbus.Config{})
	})
}
