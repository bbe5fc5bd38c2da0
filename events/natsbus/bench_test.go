package natsbus_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/natsbus"
	"codea1/events/natsbus/natstest"
)

// Each benchmark runs the bus and bare nats.go in turn, on one server, with the
// same bytes and the same guarantees: stored once for each subject, delivered
// until acknowledged, read in order. The difference is the price of envelopes,
// of order per group and, in BenchmarkMove, of the codec. The ratio also holds
// on a busy machine, because the two run in turn.

const benchBatch = 512

// pair measures two ways to do the same work.
type pair struct {
	bus, bare, raw time.Duration // raw: bare, with uncompressed payloads
	messages       int
}

func (p *pair) report(b *testing.B) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(p.messages)/p.bus.Seconds(), "bus-msg/s")
	b.ReportMetric(float64(p.messages)/p.bare.Seconds(), "bare-msg/s")
	b.ReportMetric(100*p.bare.Seconds()/p.bus.Seconds(), "%-of-bare")
	if p.raw > 0 {
		b.ReportMetric(float64(p.messages)/p.raw.Seconds(), "raw-msg/s")
		b.ReportMetric(100*p.raw.Seconds()/p.bus.Seconds(), "%-of-raw")
	}
}

func timed(into *time.Duration, do func()) {
	began := time.Now()
	do()
	*into += time.Since(began)
}

// sizes are events of a small and of a large run: a sample of this package, and
// a group of 8 answers of 300 tokens.
var sizes = map[string]func(run string, slot int) *events.Event{
	"1KB": func(run string, slot int) *events.Event {
		return eventstest.CodeSampled(eventstest.Posed(run, 1+slot/eventstest.Groups, slot%eventstest.Groups))
	},
	"30KB": func(run string, slot int) *events.Event {
		posed := eventstest.Posed(run, 1+slot/eventstest.Groups, slot%eventstest.Groups)
		sampled := &events.CodeSampled{Posed: *posed.Payload.(*events.ProblemPosed), Prompt: make(events.Int32s, 200)}
		sampled.Posed.Plan.Answers = 8
		for range 8 {
			sampled.Answers = append(sampled.Answers, answer())
		}
		return events.Caused(posed, "bench-0", eventstest.At, sampled)
	},
}

// answer is a completion of 300 tokens that compresses like real ones.
var answer = sync.OnceValue(func() events.Completion {
	c := events.Completion{Finish: events.FinishStop}
	var text strings.Builder
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		c.Tokens = append(c.Tokens, random.Int32N(50_000))
		c.LogProbs = append(c.LogProbs, -random.Float32())
		fmt.Fprint(&text, " x", random.IntN(40))
	}
	c.Text = text.String()
	return c
})

// bench is a server with the run "bus" for the bus and the run "bare" for bare
// nats.go, and a consumer of each.
type bench struct {
	*testing.B
	bus       *natsbus.Bus
	consumers chan events.Consumer // one member for each mover
	js        jetstream.JetStream
	durable   jetstream.Consumer
}

func newBench(b *testing.B) *bench {
	server := natstest.Start(b)
	x := &bench{B: b, bus: server.Connect(b, natsbus.Config{})}
	for _, run := range []string{"bus", "bare"} {
		if err := x.bus.EnsureStream(b.Context(), run); err != nil {
			b.Fatal(err)
		}
	}
	conn, err := nats.Connect(server.URL())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(conn.Close)
	if x.js, err = jetstream.New(conn); err != nil {
		b.Fatal(err)
	}
	config := events.ConsumeConfig{Run: "bus", Name: "bench", Types: []events.Type{events.TypeCodeSampled}, AckWait: time.Minute, MaxInFlight: 4 * benchBatch}
	x.consumers = make(chan events.Consumer, movers)
	for range movers {
		c, err := x.bus.Consume(b.Context(), config)
		if err != nil {
			b.Fatal(err)
		}
		x.consumers <- c
	}
	x.durable, err = x.js.CreateConsumer(b.Context(), "codea1-bare", jetstream.ConsumerConfig{
		Durable: "bench", FilterSubject: "codea1.bare.code.sampled.*", AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: time.Minute, MaxDeliver: -1, MaxAckPending: 4 * benchBatch,
	})
	if err != nil {
		b.Fatal(err)
	}
	return x
}

func (x *bench) publish(list []events.Message) {
	if err := x.bus.Publish(x.Context(), list...); err != nil {
		x.Fatal(err)
	}
}

func (x *bench) publishBare(list []*nats.Msg) {
	futures := make([]jetstream.PubAckFuture, len(list))
	for i, m := range list {
		var err error
		if futures[i], err = x.js.PublishMsgAsync(m, jetstream.WithExpectLastSequencePerSubject(0)); err != nil {
			x.Fatal(err)
		}
	}
	for _, f := range futures {
		select {
		case <-f.Ok():
		case err := <-f.Err():
			x.Fatal(err)
		}
	}
}

func (x *bench) consume(n int, handle func(*events.Message)) {
	c := <-x.consumers
	defer func() { x.consumers <- c }()
	for n > 0 {
		got, err := c.Fetch(x.Context(), min(n, benchBatch), 0)
		if err != nil {
			x.Fatal(err)
		}
		for _, d := range got {
			m := d.Message()
			handle(&m)
			if err := d.Ack(x.Context()); err != nil {
				x.Fatal(err)
			}
		}
		n -= len(got)
	}
}

func (x *bench) consumeBare(n int) {
	for n > 0 {
		got, err := x.durable.Fetch(min(n, benchBatch))
		if err != nil {
			x.Fatal(err)
		}
		for m := range got.Messages() {
			if err := m.Ack(); err != nil {
				x.Fatal(err)
			}
			n--
		}
	}
}

// wire returns the nats.go message of an event.
func wire(m *events.Message) *nats.Msg {
	msg := nats.NewMsg("codea1.bare." + string(m.Type) + "." + m.Group)
	msg.Data = m.Data
	m.Headers("ce-", msg.Header.Set)
	msg.Header.Set(jetstream.MsgIDHeader, m.ID)
	return msg
}

func encode(b *testing.B, list []*events.Event) []events.Message {
	messages := make([]events.Message, len(list))
	for i, e := range list {
		var err error
		if messages[i], err = events.Encode(e); err != nil {
			b.Fatal(err)
		}
	}
	return messages
}

// uncompressed returns the same messages without zstd, on subjects of their
// own.
func uncompressed(b *testing.B, messages []events.Message, bare []*nats.Msg) []*nats.Msg {
	list := make([]*nats.Msg, len(bare))
	for i := range list {
		data, err := messages[i].Raw()
		if err != nil {
			b.Fatal(err)
		}
		list[i] = &nats.Msg{Subject: bare[i].Subject + "-raw", Header: maps.Clone(bare[i].Header), Data: data}
		list[i].Header.Set(jetstream.MsgIDHeader, messages[i].ID+"-raw")
	}
	return list
}

// batches calls do with b.N batches of events and their nats.go messages.
func batches(b *testing.B, size string, do func(list []*events.Event, messages []events.Message, bare []*nats.Msg)) {
	for n := range b.N {
		list := make([]*events.Event, benchBatch)
		bare := make([]*nats.Msg, benchBatch)
		for i := range list {
			list[i] = sizes[size]("bus", n*benchBatch+i)
		}
		messages := encode(b, list)
		for i := range bare {
			bare[i] = wire(&messages[i])
		}
		do(list, messages, bare)
	}
}

// movers is the number of publishing goroutines, and of consuming ones, in
// BenchmarkMove.
const movers = 2

// each calls do with the movers' shares of n, at the same time.
func each(n int, do func(from, to int)) {
	var work sync.WaitGroup
	for i := range movers {
		work.Go(func() { do(i*n/movers, (i+1)*n/movers) })
	}
	work.Wait()
}

// BenchmarkMove moves events from one process to another: encoded, published,
// consumed, decoded, acknowledged, all at the same time. Bare nats.go moves the
// compressed bytes, and then the uncompressed ones.
func BenchmarkMove(b *testing.B) {
	for size := range sizes {
		b.Run(size, func(b *testing.B) {
			x, p := newBench(b), new(pair)
			batches(b, size, func(list []*events.Event, messages []events.Message, bare []*nats.Msg) {
				timed(&p.bus, func() {
					var work sync.WaitGroup
					work.Go(func() {
						each(len(list), func(from, to int) { x.publish(encode(b, list[from:to])) })
					})
					each(len(list), func(from, to int) {
						x.consume(to-from, func(m *events.Message) {
							if _, err := m.Decode(); err != nil {
								b.Error(err)
							}
						})
					})
					work.Wait()
				})
				moveBare := func(bare []*nats.Msg) {
					var work sync.WaitGroup
					work.Go(func() {
						each(len(bare), func(from, to int) { x.publishBare(bare[from:to]) })
					})
					each(len(bare), func(from, to int) { x.consumeBare(to - from) })
					work.Wait()
				}
				timed(&p.bare, func() { moveBare(bare) })
				raw := uncompressed(b, messages, bare)
				timed(&p.raw, func() { moveBare(raw) })
				p.messages += len(list)
			})
			p.report(b)
		})
	}
}

func BenchmarkPublish(b *testing.B) {
	for _, batch := range []int{1, benchBatch} {
		b.Run(fmt.Sprint(batch), func(b *testing.B) {
			x, p := newBench(b), new(pair)
			batches(b, "1KB", func(_ []*events.Event, messages []events.Message, bare []*nats.Msg) {
				for i := 0; i < len(messages); i += batch {
					timed(&p.bus, func() { x.publish(messages[i : i+batch]) })
					timed(&p.bare, func() { x.publishBare(bare[i : i+batch]) })
				}
				p.messages += len(messages)
			})
			p.report(b)
		})
	}
}

func BenchmarkConsume(b *testing.B) {
	x, p := newBench(b), new(pair)
	batches(b, "1KB", func(_ []*events.Event, messages []events.Message, bare []*nats.Msg) {
		x.publish(messages)
		x.publishBare(bare)
		timed(&p.bus, func() { x.consume(len(messages), func(*events.Message) {}) })
		timed(&p.bare, func() { x.consumeBare(len(bare)) })
		p.messages += len(messages)
	})
	p.report(b)
}

func BenchmarkRead(b *testing.B) {
	x, p := newBench(b), new(pair)
	batches(b, "1KB", func(_ []*events.Event, messages []events.Message, bare []*nats.Msg) {
		x.publish(messages)
		x.publishBare(bare)
		p.messages += len(messages)
	})
	timed(&p.bus, func() {
		r, err := x.bus.Read(b.Context(), events.ReadConfig{Run: "bus"})
		if err != nil {
			b.Fatal(err)
		}
		for range p.messages {
			if _, _, err := r.Next(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	timed(&p.bare, func() {
		c, err := x.js.OrderedConsumer(b.Context(), "codea1-bare", jetstream.OrderedConsumerConfig{})
		if err != nil {
			b.Fatal(err)
		}
		it, err := c.Messages()
		if err != nil {
			b.Fatal(err)
		}
		defer it.Stop()
		for range p.messages {
			if _, err := it.Next(); err != nil {
				b.Fatal(err)
			}
		}
	})
	p.report(b)
}
