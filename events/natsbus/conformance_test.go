package natsbus_test

import (
	"context"
	"testing"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/natsbus"
	"codea1/events/natsbus/natstest"
)

func TestMain(m *testing.M) {
	bustest.Main(m, func(ctx context.Context, address string) (events.Broker, error) {
		return natsbus.Connect(ctx, natsbus.Config{URL: address})
	})
}

func TestConformance(t *testing.T) {
	server := natstest.Start(t)
	bustest.Run(t, bustest.Features{
		Outage: func(testing.TB) func() {
			server.Stop()
			return server.Restart
		},
		Join: func(ctx context.Context) (events.Broker, error) {
			return joined(natsbus.Connect(ctx, natsbus.Config{URL: server.URL(), Wait: true}))
		},
		Address:              server.URL(),
		RefusesContradiction: true,
	}, func(t testing.TB) events.Broker {
		return server.Connect(t, natsbus.Config{})
	})
}

// joined returns no bus in the interface after an error.
func joined(bus *natsbus.Bus, err error) (events.Broker, error) {
	if err != nil {
		return nil, err
	}
	return bus, nil
}
