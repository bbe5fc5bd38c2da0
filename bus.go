package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"codea1/events"
	"codea1/events/kafkabus"
	"codea1/events/natsbus"
)

const (
	busEmbedded = "embedded"
	kafkaScheme = "kafka://"

	natsSyncInterval = 10 * time.Second
)

// openBus connects to the bus that the flags name and, where that is the
// embedded one, starts its server first.
func (r *trainingRun) openBus(ctx context.Context) error {
	bus, err := r.connect(ctx)
	if err != nil {
		return err
	}
	r.bus = bus
	r.closers = append(r.closers, bus.Close)
	return nil
}

func (r *trainingRun) connect(ctx context.Context) (events.Bus, error) {
	name, logger := "codea1-"+r.name, r.logger.With("part", "bus")
	if brokers, ok := strings.CutPrefix(r.flags.Bus, kafkaScheme); ok {
		bus, err := kafkabus.Connect(ctx, kafkabus.Config{Brokers: strings.Split(brokers, ","), Name: name, Logger: logger})
		if err != nil {
			return nil, err
		}
		return bus, nil
	}
	config := natsbus.Config{URL: r.flags.Bus, Name: name, Logger: logger}
	if r.flags.Bus == busEmbedded {
		var err error
		r.server, err = natsbus.StartServer(natsbus.ServerConfig{
			StoreDir: natsPath(r.dir), Port: r.flags.Port, Logger: r.logger.With("part", "nats"),
			// A process that dies loses nothing. A machine that loses power may
			// lose the bus's last seconds, which the log has synced: the run
			// then says that its position is past the end of the stream.
			SyncInterval: natsSyncInterval,
		})
		if err != nil {
			return nil, err
		}
		r.closers = append(r.closers, func() error { r.server.Shutdown(); return nil })
		config.Server = r.server
	}
	bus, err := natsbus.Connect(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := bus.EnsureStream(ctx, r.name); err != nil {
		return nil, errors.Join(err, bus.Close())
	}
	return bus, nil
}
