package kafkabus_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"codea1/events"
	"codea1/events/bustest"
	"codea1/events/kafkabus"
)

func TestMain(m *testing.M) {
	if what := os.Getenv(memberEnv); what != "" {
		if err := beMember(what); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	bustest.Main(m, func(ctx context.Context, address string) (events.Broker, error) {
		return kafkabus.Connect(ctx, kafkabus.Config{Brokers: []string{address}})
	})
}

// cluster is a broker in this process that keeps its data in a directory.
type cluster struct {
	t    testing.TB
	dir  string
	port int
	fake *kfake.Cluster
}

func startCluster(t testing.TB, opts ...kfake.Opt) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir()}
	c.start(t, opts...)
	t.Cleanup(func() { c.fake.Close() })
	return c
}

func (c *cluster) start(t testing.TB, opts ...kfake.Opt) {
	t.Helper()
	opts = append(opts, kfake.NumBrokers(1), kfake.DataDir(c.dir))
	if c.port != 0 {
		opts = append(opts, kfake.Ports(c.port))
	}
	var err error
	if c.fake, err = kfake.NewCluster(opts...); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(c.fake.ListenAddrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	if c.port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) connect(t testing.TB, config kafkabus.Config) *kafkabus.Bus {
	t.Helper()
	config.Brokers = c.fake.ListenAddrs()
	return connect(t, config)
}

func connect(t testing.TB, config kafkabus.Config) *kafkabus.Bus {
	t.Helper()
	bus, err := kafkabus.Connect(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bus.Close() })
	return bus
}

// startLogged starts a broker, and a bus whose log lines the test can wait for.
func startLogged(t testing.TB) (*cluster, *bustest.Lines, *kafkabus.Bus) {
	t.Helper()
	c, log := startCluster(t), bustest.NewLines()
	return c, log, c.connect(t, kafkabus.Config{Logger: slog.New(log)})
}

func TestConformance(t *testing.T) {
	c := startCluster(t)
	address := c.fake.ListenAddrs()[0]
	bustest.Run(t, bustest.Features{
		Outage: func(t testing.TB) func() {
			c.fake.Close()
			return func() { c.start(t) }
		},
		Join: join(address), Address: address, RefusesContradiction: true,
	}, func(t testing.TB) events.Broker {
		return c.connect(t, kafkabus.Config{})
	})
}

// TestConformanceBroker runs the suite on the real broker at CODEA1_KAFKA,
// which testdata/broker.sh starts.
func TestConformanceBroker(t *testing.T) {
	address := os.Getenv("CODEA1_KAFKA")
	if address == "" {
		t.Skip("CODEA1_KAFKA names no broker")
	}
	features := bustest.Features{Address: address, RefusesContradiction: true}
	if file := os.Getenv("CODEA1_KAFKA_PIDFILE"); file != "" {
		features.Join = join(address)
		features.Outage = func(t testing.TB) func() {
			kill(t, file)
			return func() {} // broker.sh starts it again
		}
	}
	bustest.Run(t, features, func(t testing.TB) events.Broker {
		return connect(t, kafkabus.Config{Brokers: []string{address}, Wait: true})
	})
}

// join returns a function that connects to a broker and waits for it.
func join(address string) func(context.Context) (events.Broker, error) {
	return func(ctx context.Context) (events.Broker, error) {
		bus, err := kafkabus.Connect(ctx, kafkabus.Config{Brokers: []string{address}, Wait: true})
		if err != nil {
			return nil, err // not a nil *Bus in the interface
		}
		return bus, nil
	}
}

// kill kills the broker whose process ID is in a file. broker.sh starts it
// again.
func kill(t testing.TB, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
