package kafkabus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/eventstest"
	"codea1/events/kafkabus"
)

func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func posed(n int) []events.Message {
	list := make([]events.Message, n)
	for i := range list {
		list[i] = eventstest.Encode(eventstest.Posed("r1", 1, i))
	}
	return list
}

// exchange publishes an event and reads it back.
func exchange(t *testing.T, bus *kafkabus.Bus) {
	t.Helper()
	ctx := bounded(t)
	want := posed(1)[0]
	if err := bus.Publish(ctx, want); err != nil {
		t.Fatal(err)
	}
	r, err := bus.Read(ctx, events.ReadConfig{Run: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := r.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-published +read):\n%s", d)
	}
}

func TestSASL(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []string{kafkabus.MechanismPlain, kafkabus.MechanismSCRAM256, kafkabus.MechanismSCRAM512} {
		t.Run(mechanism, func(t *testing.T) {
			c := startCluster(t, kfake.EnableSASL(), kfake.Superuser(mechanism, "u", "secret"))
			exchange(t, c.connect(t, kafkabus.Config{Mechanism: mechanism, User: "u", Password: "secret"}))
			_, err := kafkabus.Connect(t.Context(), kafkabus.Config{
				Brokers: c.fake.ListenAddrs(), Mechanism: mechanism, User: "u", Password: "wrong", ConnectTimeout: 200 * time.Millisecond,
			})
			if err == nil || strings.Contains(err.Error(), "wrong") || strings.Contains(err.Error(), "secret") {
				t.Errorf("connect with a wrong password: %v", err)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	certFile, keyFile, server := bustest.Certificate(t)
	c := startCluster(t, kfake.TLS(server))
	exchange(t, c.connect(t, kafkabus.Config{CAFile: certFile, CertFile: certFile, KeyFile: keyFile}))
	if _, err := kafkabus.Connect(t.Context(), kafkabus.Config{
		Brokers: c.fake.ListenAddrs(), TLS: true, ConnectTimeout: 200 * time.Millisecond,
	}); err == nil {
		t.Error("connected to a broker whose certificate nobody vouches for")
	}
}

// Passwords work over TLS as well.
func TestSASLOverTLS(t *testing.T) {
	t.Parallel()
	certFile, keyFile, server := bustest.Certificate(t)
	c := startCluster(t, kfake.TLS(server), kfake.EnableSASL(), kfake.Superuser(kafkabus.MechanismSCRAM512, "u", "secret"))
	config := kafkabus.Config{
		CAFile: certFile, CertFile: certFile, KeyFile: keyFile,
		Mechanism: kafkabus.MechanismSCRAM512, User: "u", Password: "secret",
	}
	exchange(t, c.connect(t, config))
	config.Brokers, config.Password, config.ConnectTimeout = c.fake.ListenAddrs(), "wrong", 200*time.Millisecond
	if _, err := kafkabus.Connect(t.Context(), config); err == nil || strings.Contains(err.Error(), "wrong") {
		t.Errorf("connect with a wrong password: %v", err)
	}
}

func TestConnectErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]kafkabus.Config{
		"UserAlone":        {User: "u"},
		"PasswordAlone":    {Password: "p"},
		"Mechanism":        {Mechanism: "GSSAPI", User: "u"},
		"CertificateAlone": {CertFile: "c.pem"},
		"NoCAFile":         {CAFile: "/does/not/exist"},
		"Partitions":       {Partitions: -1},
		"Replicas":         {Replicas: 7},
	} {
		if _, err := kafkabus.Connect(t.Context(), c); err == nil || !strings.HasPrefix(err.Error(), "kafka: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := kafkabus.Connect(t.Context(), kafkabus.Config{Brokers: []string{"127.0.0.1:1"}, ConnectTimeout: 100 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("connect to nobody: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := kafkabus.Connect(ctx, kafkabus.Config{Brokers: []string{"127.0.0.1:1"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("connect: %v, want context.Canceled", err)
	}
}

// Malformed records end neither a consumer nor a reader.
func TestForeignRecords(t *testing.T) {
	c := startCluster(t)
	log := bustest.NewLines()
	bus := c.connect(t, kafkabus.Config{Logger: slog.New(log), Partitions: 1})
	ctx := bounded(t)
	list := posed(2)
	if err := bus.Publish(ctx, list[0]); err != nil {
		t.Fatal(err)
	}
	raw := &kafka.Client{Addr: kafka.TCP(c.fake.ListenAddrs()...), Transport: &kafka.Transport{}}
	defer raw.Transport.(*kafka.Transport).CloseIdleConnections()
	for _, value := range []string{
		"hello",
		// The payload at its location is that of another event.
		`{"kind":"event","id":"00000000000000000000000000000001","type":"problem.posed","group":"g"}`,
	} {
		if _, err := raw.Produce(ctx, &kafka.ProduceRequest{
			Topic: "codea1.control.r1", RequiredAcks: kafka.RequireAll,
			Records: kafka.NewRecordReader(kafka.Record{Value: kafka.NewBytes([]byte(value))}),
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := bus.Publish(ctx, list[1]); err != nil {
		t.Fatal(err)
	}
	consumer, err := bus.Consume(ctx, events.ConsumeConfig{
		Run: "r1", Name: "worker", Types: []events.Type{events.TypeProblemPosed}, AckWait: time.Minute, MaxInFlight: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := bus.Read(ctx, events.ReadConfig{Run: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range list {
		m, _, err := r.Next(ctx)
		if err != nil || m.ID != want.ID {
			t.Fatalf("next: %s, %v, want %s", m.Group, err, want.Group)
		}
		got, err := consumer.Fetch(ctx, 1, 0)
		if err != nil || got[0].Message().ID != want.ID {
			t.Fatalf("fetch: %v, %v, want %s", got, err, want.Group)
		}
		if err := got[0].Ack(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // the malformed record; the payload, for both
		if line := <-log.C; !strings.HasPrefix(line, "ERROR") {
			t.Errorf("logged %q", line)
		}
	}
	// A reader that asks for malformed payloads gets them in their place.
	if r, err = bus.Read(ctx, events.ReadConfig{Run: "r1", Malformed: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{list[0].ID, "", list[1].ID} {
		m, position, err := r.Next(ctx)
		var malformed *events.MalformedError
		if want != m.ID || errors.As(err, &malformed) != (want == "") || position == "" {
			t.Errorf("next: %s at %q, %v, want event %q", m.ID, position, err, want)
		}
		if malformed != nil && (malformed.Place == "" || !strings.Contains(malformed.Header, "ce_id: "+list[0].ID) || !bytes.Equal(malformed.Data, list[0].Data)) {
			t.Errorf("%+v", malformed)
		}
	}
}

// A change without a payload, which only a forger writes, ends neither a consumer nor
// a reader.
func TestPayloadsThatDoNotExist(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	bus := c.connect(t, kafkabus.Config{Partitions: 1})
	bus.SetAbsence(time.Second)
	ctx := bounded(t)
	list := posed(2)
	if err := bus.Publish(ctx, list[0]); err != nil {
		t.Fatal(err)
	}
	raw := &kafka.Client{Addr: kafka.TCP(c.fake.ListenAddrs()...), Transport: &kafka.Transport{}}
	defer raw.Transport.(*kafka.Transport).CloseIdleConnections()
	forge := func(id, location string) {
		t.Helper()
		value := fmt.Sprintf(`{"kind":"event","id":%q,"type":"problem.posed","group":"g%s",%s}`, id, id[31:], location)
		if _, err := raw.Produce(ctx, &kafka.ProduceRequest{
			Topic: controlTopic, RequiredAcks: kafka.RequireAll,
			Records: kafka.NewRecordReader(kafka.Record{Value: kafka.NewBytes([]byte(value))}),
		}); err != nil {
			t.Fatal(err)
		}
	}
	forge("00000000000000000000000000000001", `"offset":1000`)
	forge("00000000000000000000000000000002", `"offset":1,"partition":7`)
	if err := bus.Publish(ctx, list[1]); err != nil {
		t.Fatal(err)
	}
	forge("00000000000000000000000000000003", `"offset":2`) // the end of the partition
	consumer, err := bus.Consume(ctx, workerOf("r1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range list {
		got, err := consumer.Fetch(ctx, 1, 0)
		if err != nil || got[0].Message().ID != want.ID {
			t.Fatalf("fetch: %v, %v, want %s", got, err, want.Group)
		}
		if err := got[0].Ack(ctx); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := bus.Read(ctx, events.ReadConfig{Run: "r1", Malformed: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{list[0].ID, "", "", list[1].ID, ""} {
		m, position, err := reader.Next(ctx)
		var malformed *events.MalformedError
		if m.ID != want || errors.As(err, &malformed) != (want == "") || position == "" {
			t.Errorf("%d: next: %s at %q, %v, want event %q", i, m.ID, position, err, want)
		}
	}
}

// A change that replaces an event has no effect, even with an event as its
// payload.
func TestNothingReplacesAnEvent(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	bus := c.connect(t, kafkabus.Config{Partitions: 1})
	ctx := bounded(t)
	list := posed(2)
	if err := bus.Publish(ctx, list[0]); err != nil {
		t.Fatal(err)
	}
	other := eventstest.Posed("r1", 1, 0)
	other.Payload.(*events.ProblemPosed).Problem.Question += "?"
	forged := eventstest.Encode(other)
	raw := &kafka.Client{Addr: kafka.TCP(c.fake.ListenAddrs()...), Transport: &kafka.Transport{}}
	defer raw.Transport.(*kafka.Transport).CloseIdleConnections()
	record := kafka.Record{Value: kafka.NewBytes(forged.Data)}
	forged.Headers("ce_", func(name, value string) {
		record.Headers = append(record.Headers, kafka.Header{Key: name, Value: []byte(value)})
	})
	produce := func(topic string, r kafka.Record) int64 {
		t.Helper()
		answer, err := raw.Produce(ctx, &kafka.ProduceRequest{Topic: topic, RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(r)})
		if err != nil {
			t.Fatal(err)
		}
		return answer.BaseOffset
	}
	offset := produce(posedTopic, record)
	produce(controlTopic, kafka.Record{Value: kafka.NewBytes(fmt.Appendf(nil,
		`{"kind":"event","id":%q,"type":"problem.posed","group":%q,"offset":%d,"bytes":%d,"replaces":0}`,
		forged.ID, forged.Group, offset, len(forged.Data)))})
	if err := bus.Publish(ctx, list...); err != nil {
		t.Fatal(err)
	}
	consumer, err := bus.Consume(ctx, workerOf("r1"))
	if err != nil {
		t.Fatal(err)
	}
	reader, err := bus.Read(ctx, events.ReadConfig{Run: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range list {
		m, _, err := reader.Next(ctx)
		if d := cmp.Diff(want, m); d != "" || err != nil {
			t.Errorf("read %v (-want +got):\n%s", err, d)
		}
		got, err := consumer.Fetch(ctx, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got[0].Message()); d != "" {
			t.Errorf("consumed (-want +got):\n%s", d)
		}
		if err := got[0].Ack(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// A position past the end of the control topic is an error.
func TestPositionPastEnd(t *testing.T) {
	c := startCluster(t)
	bus := c.connect(t, kafkabus.Config{})
	ctx := bounded(t)
	if err := bus.Publish(ctx, posed(3)...); err != nil {
		t.Fatal(err)
	}
	if _, err := bus.Read(ctx, events.ReadConfig{Run: "r1", From: "3"}); err != nil {
		t.Error(err)
	}
	if _, err := bus.Read(ctx, events.ReadConfig{Run: "r1", From: "4"}); !errors.Is(err, events.ErrPosition) {
		t.Errorf("read: %v, want ErrPosition", err)
	}
}

// The begin and the end of an outage are logged, and not each try.
func TestOutageIsLoggedOnce(t *testing.T) {
	c, log, bus := startLogged(t)
	ctx := bounded(t)
	if err := bus.Publish(ctx, posed(1)...); err != nil {
		t.Fatal(err)
	}
	c.fake.Close()
	published := make(chan error, 4)
	for range cap(published) {
		go func() { published <- bus.Publish(ctx, posed(3)...) }()
	}
	if line := <-log.C; line != lostLine {
		t.Errorf("logged %q", line)
	}
	time.Sleep(3 * often) // some tries
	c.start(t)
	for range cap(published) {
		if err := <-published; err != nil {
			t.Error(err)
		}
	}
	if line := <-log.C; line != backLine {
		t.Errorf("logged %q", line)
	}
	select {
	case line := <-log.C:
		t.Errorf("logged %q as well", line)
	default:
	}
}

const (
	lostLine = "WARN kafka: the brokers execute no requests, trying again"
	backLine = "WARN kafka: the brokers execute requests again"
)

// A new process finds the state of its worker set: finished events stay
// finished, held events are in flight, and deliveries count on.
func TestSetOutlivesItsMembers(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	ctx := bounded(t)
	config := events.ConsumeConfig{
		Run: "r1", Name: "worker", Types: []events.Type{events.TypeProblemPosed}, AckWait: 300 * time.Millisecond, MaxInFlight: 10,
	}
	list := posed(3)
	for number := 1; number <= 2; number++ {
		bus := c.connect(t, kafkabus.Config{})
		if err := bus.Publish(ctx, list...); err != nil {
			t.Fatal(err)
		}
		consumer, err := bus.Consume(ctx, config)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range list[number-1:] {
			got, err := consumer.Fetch(ctx, 1, 0)
			if err != nil || got[0].Message().ID != want.ID || got[0].Number() != number {
				t.Fatalf("fetch %d: %v, %v, want %s", number, got, err, want.Group)
			}
			if want.ID == list[number-1].ID {
				if err := got[0].Ack(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := bus.Close(); err != nil {
			t.Fatal(err)
		}
	}
	lag, err := c.connect(t, kafkabus.Config{}).Lag(ctx, "r1", "worker")
	if d := cmp.Diff(events.Lag{InFlight: 1}, lag); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

// A bus that gives up on a broker that never answers leaves no goroutine
// behind, which TestMain checks.
func TestSilentBroker(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() // the kernel accepts connections, nothing reads
	_, err = kafkabus.Connect(t.Context(), kafkabus.Config{Brokers: []string{silent.Addr().String()}, ConnectTimeout: 200 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), silent.Addr().String()) {
		t.Errorf("connect: %v", err)
	}
}
