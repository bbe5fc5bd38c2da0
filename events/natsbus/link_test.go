package natsbus_test

import (
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/natsbus"
	"codea1/events/natsbus/natstest"
)

// relay forwards the connections of clients to a server, until it is told not to.
type relay struct {
	net.Listener
	mu    sync.Mutex
	conns []*net.TCPConn // of the clients
	// open is closed while the messages of clients are forwarded, and the answers.
	open [2]chan struct{}
}

// The directions of a relay.
const (
	messages = iota
	answers
)

func startRelay(t *testing.T, server string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l, open: [2]chan struct{}{make(chan struct{}), make(chan struct{})}}
	close(r.open[messages])
	close(r.open[answers])
	t.Cleanup(func() { l.Close(); r.reset() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			conn, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			r.mu.Lock()
			r.conns = append(r.conns, client.(*net.TCPConn))
			r.mu.Unlock()
			go r.forward(messages, conn, client)
			go r.forward(answers, client, conn)
		}
	}()
	return r
}

func (r *relay) forward(direction int, to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 4<<10)
	for {
		n, err := from.Read(buffer)
		r.mu.Lock()
		open := r.open[direction]
		r.mu.Unlock()
		<-open
		if err == nil {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

// hold forwards nothing in a direction, until resume or reset.
func (r *relay) hold(direction int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[direction] = make(chan struct{})
}

func (r *relay) resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, open := range r.open {
		select {
		case <-open:
		default:
			close(open)
		}
	}
}

// reset resets all connections.
func (r *relay) reset() {
	r.mu.Lock()
	for _, c := range r.conns {
		_ = c.SetLinger(0)
		c.Close()
	}
	r.conns = nil
	r.mu.Unlock()
	r.resume()
}

// A connection that is reset while a publisher writes to it costs no event and no
// error.
func TestResetWhilePublishing(t *testing.T) {
	t.Parallel()
	address, err := url.Parse(natstest.Start(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	r := startRelay(t, address.Host)
	address.Host = r.Addr().String()
	bus := connectTo(t, natsbus.Config{URL: address.String()})
	ctx := bounded(t)
	const batch = 10
	list := posed(3 * batch)
	for i := range list {
		list[i].Data = append(list[i].Data, make([]byte, 1<<20)...)
	}
	for ; len(list) > 0; list = list[batch:] {
		published := make(chan error)
		r.hold(messages)
		go func() { published <- bus.Publish(ctx, list[:batch]...) }()
		time.Sleep(300 * time.Millisecond) // the buffers of the connection become full
		r.reset()
		if err := <-published; err != nil {
			t.Fatal(err)
		}
	}
}

// A delivery that is lost with the connection comes again after AckWait.
func TestDeliveryLostWithTheConnection(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	address, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	direct := server.Connect(t, natsbus.Config{})
	r := startRelay(t, address.Host)
	address.Host = r.Addr().String()
	bus := connectTo(t, natsbus.Config{URL: address.String()})
	ctx := bounded(t)
	m := posed(1)[0]
	consumer, err := bus.Consume(ctx, events.ConsumeConfig{Run: m.Run, Name: "worker", Types: []events.Type{m.Type}, AckWait: time.Second, MaxInFlight: 1})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan events.Delivery, 1)
	r.hold(answers)
	go func() {
		defer close(got)
		if list, err := consumer.Fetch(ctx, 1, 0); err == nil {
			got <- list[0]
		}
	}()
	if err := direct.Publish(ctx, m); err != nil {
		t.Fatal(err)
	}
	for lag := (events.Lag{}); lag.InFlight != 1; { // the server has sent the delivery
		if lag, err = direct.Lag(ctx, m.Run, "worker"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	r.reset()
	if d := <-got; d == nil || d.Message().ID != m.ID || d.Number() < 2 {
		t.Errorf("after the connection was lost the consumer got %+v, want the event again", d)
	}
}

// A reader has one consumer on the server, however many requests it has made for
// one. A server refuses to make more than 1000 for a stream.
func TestReaderHasOneConsumer(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	address, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	direct := server.Connect(t, natsbus.Config{})
	r := startRelay(t, address.Host)
	address.Host = r.Addr().String()
	log := bustest.NewLines()
	bus := connectTo(t, natsbus.Config{URL: address.String(), Logger: slog.New(log)})
	ctx := bounded(t)
	logged := func(want string) {
		t.Helper()
		for {
			select {
			case line := <-log.C:
				if strings.Contains(line, want) {
					return
				}
			case <-ctx.Done():
				t.Fatalf("waited for %q", want)
			}
		}
	}
	list := posed(3)
	reader, err := bus.Read(ctx, events.ReadConfig{Run: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error)
	next := func(id string) {
		m, _, err := reader.Next(ctx)
		if err == nil && m.ID != id {
			err = fmt.Errorf("read %s, want %s", m.ID, id)
		}
		read <- err
	}
	_, js := raw(t, server.URL())
	r.hold(answers)
	for i := range list {
		go next(list[i].ID)
		if i == 0 {
			logged("executes no requests") // the reader has asked twice
			r.resume()
		} else {
			r.reset()
			logged("reconnected")
		}
		if err := direct.Publish(ctx, list[i]); err != nil {
			t.Fatal(err)
		}
		if err := <-read; err != nil {
			t.Fatal(err)
		}
	}
	s, err := js.Stream(ctx, "codea1-r1")
	if err != nil {
		t.Fatal(err)
	}
	if n := s.CachedInfo().State.Consumers; n != 1 {
		t.Errorf("one reader has %d consumers", n)
	}
}

// A client leaves a server that executes no requests for another one.
func TestLeavesSilentServer(t *testing.T) {
	if os.Getenv("CODEA1_TEST_THOROUGH") != "1" {
		t.Skip("it takes 10 seconds: CODEA1_TEST_THOROUGH=1 runs it")
	}
	t.Parallel()
	address, err := url.Parse(natstest.Start(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	var urls []string
	relays := []*relay{startRelay(t, address.Host), startRelay(t, address.Host)}
	for _, r := range relays {
		address.Host = r.Addr().String()
		urls = append(urls, address.String())
	}
	bus := connectTo(t, natsbus.Config{URL: strings.Join(urls, ",")})
	ctx := bounded(t)
	if err := bus.Publish(ctx, posed(1)...); err != nil {
		t.Fatal(err)
	}
	for _, r := range relays {
		r.mu.Lock()
		used := len(r.conns) > 0
		r.mu.Unlock()
		if used {
			r.hold(answers)
		}
	}
	if has, err := bus.HasRun(ctx, "r1"); !has || err != nil {
		t.Errorf("ask another server: %t, %v", has, err)
	}
	if err := bus.Publish(ctx, posed(2)...); err != nil {
		t.Error(err)
	}
}
