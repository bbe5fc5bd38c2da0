//go:build unix

package stage_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/natsbus"
	"codea1/events/natsbus/natstest"
	"codea1/events/stage"
)

const (
	benchEvents  = 8192 // per operation
	benchWorkers = 4    // batches handled at the same time
	benchBatch   = 64
)

// BenchmarkAgainstBare compares a stage with bare nats.go. Both have the same
// bytes and guarantees: each input leads to one output, which is stored once
// and confirmed before the input is acknowledged. The bare client has its
// outputs ready; the stage decodes each input and encodes each output. Both use
// one server, in turn.
//
//	ratio      messages a second of the stage / of bare
//	cpu-ratio  CPU time of the process for bare / for the stage, server included
func BenchmarkAgainstBare(b *testing.B) {
	for _, bytes := range []int{1 << 10, 10 << 10, 100 << 10} {
		b.Run(fmt.Sprintf("%dKB", bytes>>10), func(b *testing.B) {
			server := natstest.Start(b)
			bus := server.Connect(b, natsbus.Config{})
			conn, err := nats.Connect(server.URL())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			js, err := jetstream.New(conn)
			if err != nil {
				b.Fatal(err)
			}
			n := min(benchEvents, 64<<20/bytes)
			var ours, bare spent
			for i := range b.N {
				name := fmt.Sprintf("ours%d", i)
				inputs, _ := benchPairs(b, name, n, bytes)
				publishAll(b, bus, inputs)
				ours.add(b, func() { answerAll(b, bus, name, n) })

				name = fmt.Sprintf("bare%d", i)
				inputs, outputs := benchPairs(b, name, n, bytes)
				publishAll(b, bus, inputs)
				ready := make(map[string]*nats.Msg, n)
				for i := range outputs {
					ready["codea1."+name+"."+string(inputs[i].Type)+"."+inputs[i].Group] = bareMessage(&outputs[i])
				}
				bare.add(b, func() { answerBare(b, js, name, ready) })
			}
			b.ReportMetric(float64(n*b.N)/ours.wall.Seconds(), "msg/s")
			b.ReportMetric(float64(n*b.N)/bare.wall.Seconds(), "bare-msg/s")
			b.ReportMetric(bare.wall.Seconds()/ours.wall.Seconds(), "ratio")
			b.ReportMetric(bare.cpu.Seconds()/ours.cpu.Seconds(), "cpu-ratio")
		})
	}
}

// spent adds up the time of pieces of work.
type spent struct{ wall, cpu time.Duration }

func (s *spent) add(b *testing.B, work func()) {
	cpu, began := processTime(b), time.Now()
	work()
	s.wall += time.Since(began)
	s.cpu += processTime(b) - cpu
}

func processTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchPairs returns inputs and the outputs of a stage for them, of about that
// size on the bus.
func benchPairs(b *testing.B, name string, n, bytes int) (inputs, outputs []events.Message) {
	random := rand.New(rand.NewPCG(1, uint64(bytes)))
	for slot := range n {
		noise := make([]byte, bytes*3/4) // base64 makes it bytes, which zstd compresses back
		for i := range noise {
			noise[i] = byte(random.Uint32())
		}
		posed := eventstest.Posed(name, 1+slot/eventstest.Groups, slot%eventstest.Groups)
		posed.Payload.(*events.ProblemPosed).Problem.Question = base64.StdEncoding.EncodeToString(noise)
		inputs = append(inputs, eventstest.Encode(posed))
		outputs = append(outputs, eventstest.Encode(echo(posed)))
	}
	return inputs, outputs
}

// echo returns an output as large as its input.
func echo(posed *events.Event) *events.Event {
	p := posed.Payload.(*events.ProblemPosed)
	small := *p
	small.Problem.Question = "?"
	return events.Caused(posed, "worker-0", eventstest.At, &events.CodeSampled{
		Posed: small, Prompt: events.Int32s{1, 2, 3},
		Answers: []events.Completion{{Text: p.Problem.Question, Finish: events.FinishStop}, {Text: "pass", Finish: events.FinishStop}},
	})
}

func publishAll(b *testing.B, bus *natsbus.Bus, list []events.Message) {
	for chunk := range slices.Chunk(list, events.MaxPublishBatch) {
		if err := bus.Publish(b.Context(), chunk...); err != nil {
			b.Fatal(err)
		}
	}
}

// answerAll runs a stage until it has answered n events.
func answerAll(b *testing.B, bus *natsbus.Bus, name string, n int) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var handled atomic.Int64
	c := config(bus, stage.Each(func(_ context.Context, e *events.Event) ([]*events.Event, error) {
		if handled.Add(1) == int64(n) {
			cancel() // the drain publishes and acknowledges events in flight
		}
		return []*events.Event{echo(e)}, nil
	}))
	c.Run, c.Concurrency, c.Batch = name, benchWorkers, benchBatch
	s, err := stage.New(c)
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Run(ctx); err != nil {
		b.Fatal(err)
	}
}

func bareMessage(m *events.Message) *nats.Msg {
	msg := nats.NewMsg("codea1." + m.Run + "." + string(m.Type) + "." + m.Group)
	msg.Data = m.Data
	m.Headers("ce-", msg.Header.Set)
	return msg
}

// answerBare does the same as answerAll. Its outputs are ready, by the subject
// of their input.
func answerBare(b *testing.B, js jetstream.JetStream, name string, ready map[string]*nats.Msg) {
	consumer, err := js.CreateConsumer(b.Context(), "codea1-"+name, jetstream.ConsumerConfig{
		Durable: "bare", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 1024,
		FilterSubject: "codea1." + name + "." + string(events.TypeProblemPosed) + ".*",
	})
	if err != nil {
		b.Fatal(err)
	}
	var left atomic.Int64
	left.Store(int64(len(ready)))
	var workers sync.WaitGroup
	for range benchWorkers {
		workers.Go(func() {
			for left.Load() > 0 {
				batch, err := consumer.Fetch(benchBatch, jetstream.FetchMaxWait(time.Millisecond))
				if err != nil {
					b.Error(err)
					return
				}
				var inputs []jetstream.Msg
				var stored []jetstream.PubAckFuture
				for msg := range batch.Messages() {
					future, err := js.PublishMsgAsync(ready[msg.Subject()], jetstream.WithExpectLastSequencePerSubject(0))
					if err != nil {
						b.Error(err)
						return
					}
					inputs, stored = append(inputs, msg), append(stored, future)
				}
				for i, future := range stored {
					select {
					case <-future.Ok():
					case err := <-future.Err():
						b.Error(err)
						return
					}
					if err := inputs[i].Ack(); err != nil {
						b.Error(err)
						return
					}
				}
				left.Add(-int64(len(inputs)))
			}
		})
	}
	workers.Wait()
}

// BenchmarkReplicas shares the work of a stage among one, two and eight
// replicas with two slots each and 50 ms an event. Each replica has a
// connection of its own. It reports the speed of two and of eight relative to
// one.
func BenchmarkReplicas(b *testing.B) {
	const each, slots, work = 64, 2, 50 * time.Millisecond // events per replica
	wall := map[int]time.Duration{}
	for i := range b.N {
		for _, replicas := range []int{1, 2, 8} {
			server := natstest.Start(b)
			bus := server.Connect(b, natsbus.Config{})
			name := fmt.Sprintf("r%d-%d", replicas, i)
			n := each * replicas
			inputs, _ := benchPairs(b, name, n, 1<<10)
			publishAll(b, bus, inputs)
			var stages []*stage.Stage
			for r := range replicas {
				c := config(server.Connect(b, natsbus.Config{}), stage.Each(func(_ context.Context, e *events.Event) ([]*events.Event, error) {
					time.Sleep(work)
					return []*events.Event{echo(e)}, nil
				}))
				c.Run, c.Instance, c.Concurrency = name, fmt.Sprint(r), slots
				s, err := stage.New(c)
				if err != nil {
					b.Fatal(err)
				}
				stages = append(stages, s)
			}
			ctx, cancel := context.WithCancel(b.Context())
			var running sync.WaitGroup
			began := time.Now()
			for _, s := range stages {
				running.Go(func() {
					if err := s.Run(ctx); err != nil {
						b.Error(err)
					}
				})
			}
			answered(b, bus, name, n)
			wall[replicas] += time.Since(began)
			cancel()
			running.Wait()
		}
	}
	perSecond := func(replicas int) float64 { return float64(each*replicas*b.N) / wall[replicas].Seconds() }
	b.ReportMetric(perSecond(1), "one-events/s")
	b.ReportMetric(perSecond(2)/perSecond(1), "two-speedup")
	b.ReportMetric(perSecond(8)/perSecond(1), "eight-speedup")
}

// answered waits until n events are answered.
func answered(b *testing.B, bus *natsbus.Bus, name string, n int) {
	r, err := bus.Read(b.Context(), events.ReadConfig{Run: name, Types: []events.Type{events.TypeCodeSampled}})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	for range n {
		if _, _, err := r.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
