package natsbus_test

import (
	"testing"
	"time"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/natsbus"
	"codea1/events/natsbus/natstest"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Each benchmark runs the bus and bare nats.go side by side on one server;
// what lies between them is the price of deduplication, order and envelopes.

const (
	benchBatch = 256
	benchBytes = 10 << 10
)

func benchMessages(run string, n int) []events.Message {
	list := make([]events.Message, n)
	data := make([]byte, benchBytes)
	for i := range list {
		list[i] = bustest.Encode(bustest.Posed(run, 1+i/bustest.Groups, i%bustest.Groups))
		list[i].Encoding, list[i].Data = events.EncodingNone, data
	}
	return list
}

func benchBus(b *testing.B) (*natsbus.Bus, jetstream.JetStream) {
	server := natstest.Start(b)
	bus := server.Connect(b, natsbus.Config{})
	for _, run := range []string{"bus", "bare"} {
		if err := bus.EnsureStream(b.Context(), run); err != nil {
			b.Fatal(err)
		}
	}
	conn, err := nats.Connect(server.URL())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		b.Fatal(err)
	}
	return bus, js
}

func publishBare(b *testing.B, js jetstream.JetStream, list []events.Message) {
	futures := make([]jetstream.PubAckFuture, len(list))
	for i, m := range list {
		msg := nats.NewMsg("codea1.bare." + string(m.Type) + "." + m.Group)
		msg.Data = m.Data
		m.Headers("ce-", msg.Header.Set)
		var err error
		if futures[i], err = js.PublishMsgAsync(msg); err != nil {
			b.Fatal(err)
		}
	}
	for _, f := range futures {
		select {
		case <-f.Ok():
		case err := <-f.Err():
			b.Fatal(err)
		}
	}
}

func perSecond(b *testing.B, messages int) {
	b.ReportMetric(float64(messages)/b.Elapsed().Seconds(), "msg/s")
}

func BenchmarkPublish(b *testing.B) {
	for name, batch := range map[string]int{"One": 1, "Batch": benchBatch} {
		b.Run(name+"/Bus", func(b *testing.B) {
			bus, _ := benchBus(b)
			list := benchMessages("bus", b.N*batch)
			b.ResetTimer()
			for ; len(list) > 0; list = list[batch:] {
				if err := bus.Publish(b.Context(), list[:batch]...); err != nil {
					b.Fatal(err)
				}
			}
			perSecond(b, b.N*batch)
		})
		b.Run(name+"/Bare", func(b *testing.B) {
			_, js := benchBus(b)
			list := benchMessages("bare", b.N*batch)
			b.ResetTimer()
			for ; len(list) > 0; list = list[batch:] {
				publishBare(b, js, list[:batch])
			}
			perSecond(b, b.N*batch)
		})
	}
}

func BenchmarkConsume(b *testing.B) {
	prepare := func(b *testing.B) (*natsbus.Bus, jetstream.JetStream) {
		bus, js := benchBus(b)
		list := benchMessages("bus", b.N*benchBatch)
		for ; len(list) > 0; list = list[benchBatch:] {
			if err := bus.Publish(b.Context(), list[:benchBatch]...); err != nil {
				b.Fatal(err)
			}
		}
		b.ResetTimer()
		return bus, js
	}
	b.Run("Bus", func(b *testing.B) {
		bus, _ := prepare(b)
		c, err := bus.Consume(b.Context(), events.ConsumeConfig{Run: "bus", Name: "bench", AckWait: time.Minute, MaxInFlight: 4 * benchBatch})
		if err != nil {
			b.Fatal(err)
		}
		for n := 0; n < b.N*benchBatch; {
			got, err := c.Fetch(b.Context(), benchBatch, 0)
			if err != nil {
				b.Fatal(err)
			}
			for _, d := range got {
				if err := d.Ack(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			n += len(got)
		}
		perSecond(b, b.N*benchBatch)
	})
	b.Run("Bare", func(b *testing.B) {
		_, js := prepare(b)
		c, err := js.CreateConsumer(b.Context(), "codea1-bus", jetstream.ConsumerConfig{AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 4 * benchBatch})
		if err != nil {
			b.Fatal(err)
		}
		for n := 0; n < b.N*benchBatch; {
			got, err := c.Fetch(benchBatch)
			if err != nil {
				b.Fatal(err)
			}
			for m := range got.Messages() {
				if err := m.Ack(); err != nil {
					b.Fatal(err)
				}
				n++
			}
		}
		perSecond(b, b.N*benchBatch)
	})
	b.Run("Read/Bus", func(b *testing.B) {
		bus, _ := prepare(b)
		r, err := bus.Read(b.Context(), events.ReadConfig{Run: "bus"})
		if err != nil {
			b.Fatal(err)
		}
		for range b.N * benchBatch {
			if _, _, err := r.Next(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		perSecond(b, b.N*benchBatch)
	})
	b.Run("Read/Bare", func(b *testing.B) {
		_, js := prepare(b)
		c, err := js.OrderedConsumer(b.Context(), "codea1-bus", jetstream.OrderedConsumerConfig{})
		if err != nil {
			b.Fatal(err)
		}
		it, err := c.Messages()
		if err != nil {
			b.Fatal(err)
		}
		defer it.Stop()
		for range b.N * benchBatch {
			if _, err := it.Next(); err != nil {
				b.Fatal(err)
			}
		}
		perSecond(b, b.N*benchBatch)
	})
}
