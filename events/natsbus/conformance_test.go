package natsbus_test

import (
	"testing"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/natsbus"
	"codea1/events/natsbus/natstest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	server := natstest.Start(t)
	bustest.Run(t, bustest.Features{
		Restart:              func(testing.TB) { server.Restart() },
		RefusesContradiction: true,
	}, func(t testing.TB) events.Bus {
		return server.Connect(t, natsbus.Config{})
	})
}
