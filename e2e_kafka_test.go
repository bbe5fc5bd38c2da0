package main

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"codea1/events/connect"
)

// kafkaBroker is the broker at CODEA1_KAFKA, which
// events/kafkabus/testdata/broker.sh starts, or a fake one in this process.
type kafkaBroker struct {
	address string
	dir     string
	fake    *kfake.Cluster // nil for a real one
}

func startKafka(t *testing.T) *kafkaBroker {
	t.Helper()
	if address := os.Getenv("CODEA1_KAFKA"); address != "" {
		return &kafkaBroker{address: address}
	}
	b := &kafkaBroker{dir: t.TempDir()}
	b.start(t)
	t.Cleanup(func() { b.fake.Close() })
	return b
}

// hold is the file that keeps the script of a real broker from starting it again.
func hold() string { return filepath.Join(filepath.Dir(os.Getenv("CODEA1_KAFKA_PIDFILE")), "hold") }

// start implements broker. A real one is started again by its script.
func (b *kafkaBroker) start(t *testing.T) {
	t.Helper()
	if b.dir == "" {
		if err := os.Remove(hold()); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		eventually(t, "the broker accepts connections", func() bool {
			conn, err := net.Dial("tcp", b.address)
			if err == nil {
				_ = conn.Close()
			}
			return err == nil
		})
		return
	}
	options := []kfake.Opt{kfake.NumBrokers(1), kfake.DataDir(b.dir)}
	if b.address != "" {
		_, text, err := net.SplitHostPort(b.address)
		if err != nil {
			t.Fatal(err)
		}
		port, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		options = append(options, kfake.Ports(port))
	}
	var err error
	if b.fake, err = kfake.NewCluster(options...); err != nil {
		t.Fatal(err)
	}
	b.address = b.fake.ListenAddrs()[0]
}

func (b *kafkaBroker) flags(*testing.T, string) []string {
	return []string{"--bus", connect.KafkaScheme + b.address}
}

// kill implements broker.
func (b *kafkaBroker) kill(t *testing.T) {
	t.Helper()
	if b.fake != nil {
		b.fake.Close()
		return
	}
	if err := os.WriteFile(hold(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(os.Getenv("CODEA1_KAFKA_PIDFILE"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	// The script may be starting the broker at this moment.
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Logf("broker %d: %v", pid, err)
	}
}
