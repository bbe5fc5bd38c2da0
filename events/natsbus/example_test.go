package natsbus_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/natsbus"
)

// A server in this process, a worker's consumer and a reader.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "events")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	server, err := natsbus.StartServer(natsbus.ServerConfig{StoreDir: dir})
	if err != nil {
		panic(err)
	}
	defer server.Shutdown()
	bus, err := natsbus.Connect(ctx, natsbus.Config{Server: server})
	if err != nil {
		panic(err)
	}
	defer bus.Close()

	message, err := events.Encode(eventstest.Posed("r1", 1, 3))
	if err != nil {
		panic(err)
	}
	for range 2 { // the second time it is stored already
		if err := bus.Publish(ctx, message); err != nil {
			panic(err)
		}
	}

	worker, err := bus.Consume(ctx, events.ConsumeConfig{
		Run: "r1", Name: "generation", Types: []events.Type{events.TypeProblemPosed},
		AckWait: 30 * time.Second, MaxInFlight: 64,
	})
	if err != nil {
		panic(err)
	}
	deliveries, err := worker.Fetch(ctx, 16, 5*time.Millisecond)
	if err != nil {
		panic(err)
	}
	for _, d := range deliveries {
		fmt.Println("delivered", d.Message().Type, d.Message().Group, "delivery", d.Number())
		if err := d.Ack(ctx); err != nil {
			panic(err)
		}
	}

	reader, err := bus.Read(ctx, events.ReadConfig{Run: "r1", From: events.Start})
	if err != nil {
		panic(err)
	}
	m, position, err := reader.Next(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("read", m.Type, m.Group, "position", position)
	// Output:
	// delivered problem.posed s000001-q0003 delivery 1
	// read problem.posed s000001-q0003 position 1
}
