package kafkabus_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/kafkabus"
)

// A worker takes and acknowledges a problem, and a reader of the run reads it.
func Example() {
	ctx := context.Background()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()

	bus, err := kafkabus.Connect(ctx, kafkabus.Config{Brokers: cluster.ListenAddrs()})
	if err != nil {
		log.Fatal(err)
	}
	defer bus.Close()
	if err := bus.Publish(ctx, eventstest.Encode(eventstest.Posed("demo", 1, 7))); err != nil {
		log.Fatal(err)
	}

	worker, err := bus.Consume(ctx, events.ConsumeConfig{
		Run: "demo", Name: "execution", Types: []events.Type{events.TypeProblemPosed}, AckWait: time.Minute, MaxInFlight: 16,
	})
	if err != nil {
		log.Fatal(err)
	}
	deliveries, err := worker.Fetch(ctx, 8, 10*time.Millisecond)
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range deliveries {
		fmt.Println("work on", d.Message().Type, d.Message().Group)
		if err := d.Ack(ctx); err != nil {
			log.Fatal(err)
		}
	}

	reader, err := bus.Read(ctx, events.ReadConfig{Run: "demo"})
	if err != nil {
		log.Fatal(err)
	}
	m, position, err := reader.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("read", m.Type, m.Group, "up to", position)
	// Output:
	// work on problem.posed s000001-q0007
	// read problem.posed s000001-q0007 up to 1
}
