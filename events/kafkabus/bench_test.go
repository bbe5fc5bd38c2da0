package kafkabus_test

import (
	"context"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/kafkabus"
)

// The throughput benchmarks compare the bus with bare kafka-go on the broker at
// CODEA1_KAFKA. The difference is the price of order, deduplication and
// envelopes. BenchmarkMembers needs no broker.

const (
	benchBatch = 256
	benchBytes = 10 << 10
)

func benchMessages(run string, n int) []events.Message {
	list := make([]events.Message, n)
	data := make([]byte, benchBytes)
	for i := range list {
		list[i] = eventstest.Encode(eventstest.Posed(run, 1+i/eventstest.Groups, i%eventstest.Groups))
		list[i].Encoding, list[i].Data = events.EncodingNone, data
	}
	return list
}

func benchBus(b *testing.B) (bus *kafkabus.Bus, run string) {
	address := os.Getenv("CODEA1_KAFKA")
	if address == "" {
		b.Skip("CODEA1_KAFKA names no broker")
	}
	return connect(b, kafkabus.Config{Brokers: []string{address}}), "b" + strconv.FormatInt(time.Now().UnixNano(), 36)
}

func perSecond(b *testing.B, messages int) {
	b.ReportMetric(float64(messages)/b.Elapsed().Seconds(), "msg/s")
}

func publishAll(b *testing.B, bus *kafkabus.Bus, list []events.Message) {
	for ; len(list) > 0; list = list[benchBatch:] {
		if err := bus.Publish(b.Context(), list[:benchBatch]...); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPublish(b *testing.B) {
	b.Run("Bus", func(b *testing.B) {
		bus, run := benchBus(b)
		list := benchMessages(run, b.N*benchBatch)
		b.ResetTimer()
		publishAll(b, bus, list)
		perSecond(b, b.N*benchBatch)
	})
	b.Run("Bare", func(b *testing.B) {
		_, run := benchBus(b)
		list := benchMessages(run, b.N*benchBatch)
		w := &kafka.Writer{
			Addr: kafka.TCP(os.Getenv("CODEA1_KAFKA")), Topic: "codea1.problem.posed", Balancer: &kafka.Hash{},
			RequiredAcks: kafka.RequireAll, BatchTimeout: time.Millisecond, BatchSize: benchBatch, BatchBytes: 1 << 20,
			Transport: &kafka.Transport{},
		}
		defer w.Transport.(*kafka.Transport).CloseIdleConnections()
		defer w.Close()
		b.ResetTimer()
		for ; len(list) > 0; list = list[benchBatch:] {
			var batch []kafka.Message
			for i := range list[:benchBatch] {
				m := kafka.Message{Key: []byte(list[i].Group), Value: list[i].Data}
				list[i].Headers("ce_", func(name, value string) {
					m.Headers = append(m.Headers, kafka.Header{Key: name, Value: []byte(value)})
				})
				batch = append(batch, m)
			}
			if err := w.WriteMessages(b.Context(), batch...); err != nil {
				b.Fatal(err)
			}
		}
		perSecond(b, b.N*benchBatch)
	})
}

func BenchmarkConsume(b *testing.B) {
	bus, run := benchBus(b)
	publishAll(b, bus, benchMessages(run, b.N*benchBatch))
	c, err := bus.Consume(b.Context(), events.ConsumeConfig{Run: run, Name: "bench", AckWait: time.Minute, MaxInFlight: 4 * benchBatch})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
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
}

func BenchmarkRead(b *testing.B) {
	bus, run := benchBus(b)
	publishAll(b, bus, benchMessages(run, b.N*benchBatch))
	r, err := bus.Read(b.Context(), events.ReadConfig{Run: run})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N * benchBatch {
		if _, _, err := r.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b, b.N*benchBatch)
}

// BenchmarkMembers has members of one worker set that take 50 ms for a message,
// one at a time. Without a price for sharing it would reach 20 msg/s a member.
func BenchmarkMembers(b *testing.B) {
	for _, members := range []int{1, 2, 8} {
		b.Run(strconv.Itoa(members), func(b *testing.B) {
			c := startCluster(b)
			list := benchMessages("r1", b.N*members)
			for i := range list {
				list[i].Data = list[i].Data[:1]
			}
			bus := c.connect(b, kafkabus.Config{})
			for batch := range slices.Chunk(list, benchBatch) {
				if err := bus.Publish(b.Context(), batch...); err != nil {
					b.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			var left atomic.Int64
			left.Store(int64(len(list)))
			var work sync.WaitGroup
			consumers := make([]events.Consumer, members)
			for i := range consumers {
				var err error
				if consumers[i], err = c.connect(b, kafkabus.Config{}).Consume(ctx, events.ConsumeConfig{
					Run: "r1", Name: "bench", AckWait: time.Minute, MaxInFlight: 64,
				}); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			for _, consumer := range consumers {
				work.Go(func() {
					for {
						got, err := consumer.Fetch(ctx, 1, 0)
						if err != nil {
							return // all events are handled
						}
						time.Sleep(50 * time.Millisecond)
						if err := got[0].Ack(b.Context()); err != nil {
							b.Error(err)
						}
						if left.Add(-1) == 0 {
							cancel()
						}
					}
				})
			}
			work.Wait()
			perSecond(b, len(list))
		})
	}
}
