package natstest

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"codea1/events"
	"codea1/events/natsbus"
)

// Nodes is the number of servers of a Cluster. It works without one of them.
const Nodes = 3

// Cluster is a NATS cluster in this process.
type Cluster struct {
	t       testing.TB
	options [Nodes]*natsserver.Options
	servers [Nodes]*natsserver.Server
}

const (
	clusterTimeout = 30 * time.Second
	// headers bounds an event's envelope.
	headers = 64 << 10
)

// StartCluster starts a cluster that ends with the test.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	var routes []*url.URL
	dir := t.TempDir()
	for i := range c.options {
		port := FreePort(t)
		routes = append(routes, &url.URL{Scheme: "nats", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))})
		c.options[i] = &natsserver.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: FreePort(t),
			MaxPayload: events.MaxPayloadBytes + headers, NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: filepath.Join(dir, strconv.Itoa(i)), JetStreamMaxStore: 1 << 50, JetStreamMaxMemory: 256 << 20,
			Cluster: natsserver.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port},
		}
	}
	for i := range c.options {
		c.options[i].Routes = routes
		c.start(i)
	}
	t.Cleanup(func() {
		for i := range c.servers {
			c.Stop(i)
		}
	})
	c.untilWhole()
	return c
}

func (c *Cluster) start(i int) {
	c.t.Helper()
	options := c.options[i].Clone()
	s, err := natsserver.NewServer(options)
	if err != nil {
		c.t.Fatal(err)
	}
	c.servers[i] = s
	s.Start()
	if !s.ReadyForConnections(clusterTimeout) {
		c.t.Fatalf("node %d does not accept connections", i)
	}
}

// untilWhole waits until the cluster has a leader that knows all nodes, and no
// node is behind.
func (c *Cluster) untilWhole() {
	c.t.Helper()
	for deadline := time.Now().Add(clusterTimeout); !c.isWhole(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatal("the nodes do not find together")
		}
	}
}

func (c *Cluster) isWhole() bool {
	peers := 0
	for _, s := range c.servers {
		if s.Healthz(nil).Error != "" {
			return false
		}
		peers = max(peers, len(s.JetStreamClusterPeers()))
	}
	return peers == Nodes
}

// URL returns the addresses of all nodes.
func (c *Cluster) URL() string {
	var urls []string
	for _, o := range c.options {
		urls = append(urls, "nats://"+net.JoinHostPort(o.Host, strconv.Itoa(o.Port)))
	}
	return strings.Join(urls, ",")
}

// Connect returns a bus that is closed with the test and stores each run on all
// nodes.
func (c *Cluster) Connect(t testing.TB, config natsbus.Config) *natsbus.Bus {
	t.Helper()
	config.URL, config.Replicas = c.URL(), Nodes
	return connect(t, config)
}

// Leader returns the node that leads the stream of a run.
func (c *Cluster) Leader(run string) int {
	c.t.Helper()
	for deadline := time.Now().Add(clusterTimeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		for i, s := range c.servers {
			if s.JetStreamIsStreamLeader(natsserver.DEFAULT_GLOBAL_ACCOUNT, "codea1-"+run) {
				return i
			}
		}
	}
	c.t.Fatalf("nobody leads run %s", run)
	return 0
}

// Stop stops a node; its store stays on disk.
func (c *Cluster) Stop(i int) {
	c.servers[i].Shutdown()
	c.servers[i].WaitForShutdown()
}

// Restart starts a stopped node and waits until it takes part.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	c.start(i)
	c.untilWhole()
}

// Stored returns the messages, the bytes and the consumers of a run's stream. Each node
// has the messages, but knows only the consumers that it stores.
func (c *Cluster) Stored(run string) (messages, size uint64, consumers int) {
	c.t.Helper()
	leader, names := c.Leader(run), map[string]bool{}
	for i, server := range c.servers {
		all, err := server.Jsz(&natsserver.JSzOptions{Accounts: true, Streams: true, Consumer: true})
		if err != nil {
			c.t.Fatal(err)
		}
		for _, account := range all.AccountDetails {
			for _, stream := range account.Streams {
				if stream.Name != "codea1-"+run {
					continue
				}
				for _, consumer := range stream.Consumer {
					names[consumer.Name] = true
				}
				if i == leader {
					messages, size = stream.State.Msgs, stream.State.Bytes
				}
			}
		}
	}
	return messages, size, len(names)
}
