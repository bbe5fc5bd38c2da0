package connect

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"codea1/events"
	"codea1/events/natsbus"
	"codea1/events/rundir"
)

// Running returns the flags of the embedded server of a run in progress, with the
// login of a user; nil if none answers.
func Running(ctx context.Context, dir, user string) *Flags {
	store := rundir.NATS(dir)
	address, err := os.ReadFile(natsbus.AddressFile(store))
	if err != nil {
		return nil // no server has the store open
	}
	f := &Flags{URL: "nats://" + string(address), User: user, PasswordFile: natsbus.PasswordFile(store, user), Replicas: 1}
	if f.CheckReachable(ctx) != nil {
		return nil // a crash left the file
	}
	return f
}

// OpenRun opens the embedded bus of a run directory: that of the training in progress,
// or its store, which no training can use meanwhile. name is for the server's
// monitoring.
func OpenRun(ctx context.Context, dir, name string, logger *slog.Logger) (events.Broker, error) {
	if f := Running(ctx, dir, natsbus.PipelineUser); f != nil {
		return f.Open(ctx, name, logger)
	}
	if _, err := os.Stat(rundir.NATS(dir)); err != nil {
		return nil, fmt.Errorf("the run has no store of an embedded bus; --bus names another bus: %w", err)
	}
	server, bus, err := new(Flags).OpenEmbedded(ctx, filepath.Base(dir), rundir.NATS(dir), 0, logger)
	if err != nil {
		return nil, err
	}
	return &ownServer{bus, server}, nil
}

// ownServer is a bus with a server that ends with it.
type ownServer struct {
	events.Broker
	server *natsbus.Server
}

// Close implements events.Bus.
func (o *ownServer) Close() error {
	defer o.server.Shutdown()
	return o.Broker.Close()
}
