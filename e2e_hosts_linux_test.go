package main

import (
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
)

// cluster is three NATS servers with the configuration permissions.conf, each on a
// host of its own.
type cluster struct {
	logins  string
	urls    string // for the hosts
	doors   string // the same servers, for this process
	servers []*netHost
}

const (
	clusterNodes = 3
	// As many faults are shorter as longer than the geometric mean of the shortest
	// and the longest.
	shortestFault = 100 * time.Millisecond
)

// hostOf returns the host of a stage.
func hostOf(stage string) string {
	switch stage {
	case events.StageExecution:
		return "execution"
	case events.StageTrainerCode, events.StageTrainerTest:
		return "trainers"
	}
	return "others"
}

func startCluster(t *testing.T, n *network) *cluster {
	t.Helper()
	c := &cluster{}
	var env []string
	c.logins, env = stageLogins(t)
	var urls, doors, routes []string
	for i := range clusterNodes {
		h := n.host("nats" + strconv.Itoa(i))
		c.servers = append(c.servers, h)
		urls = append(urls, "nats://"+h.address+":4222")
		doors = append(doors, "nats://"+n.door(h.address+":4222"))
		routes = append(routes, "nats://"+h.address+":6222")
	}
	c.urls, c.doors = strings.Join(urls, ","), strings.Join(doors, ",")
	for _, h := range c.servers {
		command := exec.Command("nats-server", "-c", "events/natsbus/permissions.conf", "-sd", t.TempDir(), "--addr", h.address, "--port", "4222",
			"--server_name", h.name, "--cluster_name", "c", "--cluster", "nats://"+h.address+":6222", "--routes", strings.Join(routes, ","), "--no_advertise")
		command.Stderr = os.Stderr
		command.Env = append(os.Environ(), env...)
		var err error
		h.in(func() { err = command.Start() })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = command.Process.Kill()
			_ = command.Wait()
		})
	}
	return c
}

// flags returns the flags of a stage, or of the operator, which is this process.
func (c *cluster) flags(user string) []string {
	login := []string{"--bus-user", user, "--bus-password-file", filepath.Join(c.logins, user)}
	if user == operator {
		return append(login, "--bus", c.doors)
	}
	return append(login, "--bus", c.urls, "--bus-api-prefix", "CODEA1.API")
}

// without returns the hosts of the other servers.
func (c *cluster) without(h *netHost) []*netHost {
	return slices.DeleteFunc(slices.Clone(c.servers), func(o *netHost) bool { return o == h })
}

// leader returns the host of the server that leads the stream of a run.
func (c *cluster) leader(t *testing.T, n *network, run string) *netHost {
	t.Helper()
	conn, err := nats.Connect(c.doors, nats.UserInfo(operator, "secret-of-"+operator))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	name := ""
	eventually(t, "a server leads the stream", func() bool {
		s, err := js.Stream(t.Context(), "codea1-"+run)
		if err != nil || s.CachedInfo().Cluster == nil {
			return false
		}
		if replicas := s.CachedInfo().Config.Replicas; replicas != clusterNodes {
			t.Errorf("the run is stored on %d servers, want %d", replicas, clusterNodes)
		}
		name = s.CachedInfo().Cluster.Leader
		return name != ""
	})
	return n.host(name)
}

// Stages on hosts of their own and a cluster of three NATS servers give the same
// results as a run in one process while links are cut, slowed and healed.
// CODEA1_LINK_FAULTS is the number of these faults. Run follows run until there
// have been so many.
func TestHostsWithFailingLinks(t *testing.T) {
	wanted, err := strconv.Atoi(os.Getenv("CODEA1_LINK_FAULTS"))
	if err != nil {
		t.Skip("CODEA1_LINK_FAULTS=10 runs the stages on hosts in network namespaces and cuts their links 10 times; it needs root")
	}
	longest := 6 * time.Second
	if wanted > 10 {
		longest = 30 * time.Second
	}
	want, dir := read(t, runPath(completedRun(t), "r"), sharedSteps), t.TempDir()
	stages := []string{"execution", "trainers", "others"}
	n := newNetwork(t, append(stages, "nats0", "nats1", "nats2")...)
	l := &linkFaults{
		network: n, servers: startCluster(t, n), stages: n.hosts[:len(stages)],
		every: max(1, want.events/20), left: wanted, longest: longest, counts: map[string]int{},
	}
	seed := rand.Uint64()
	t.Logf("faults are drawn with seed %d; a slow link has the queue %q", seed, n.slowness)
	l.random = rand.New(rand.NewPCG(seed, 0))
	for round := 1; l.left > 0; round++ {
		c := &crew{
			t: t, dir: dir, run: crewRun(t) + "-" + strconv.Itoa(round), bus: l.servers.flags, steady: true, patience: time.Duration(l.left) * longest,
			on: func(stage string, start func()) { n.host(hostOf(stage)).in(start) },
		}
		c.endWithTest()
		c.recorder(train("--steps", strconv.Itoa(sharedSteps), "--bus-replicas", strconv.Itoa(clusterNodes)))
		for _, stage := range workers {
			c.add(stage)
		}
		l.disturb(c)
		c.same(sharedSteps, want)
		must(t, c.dir, "replay", "verify", c.run)
	}
	t.Logf("%d faults: %v", wanted, l.counts)
}

// linkFaults disturbs the links of a network.
type linkFaults struct {
	*network
	servers *cluster
	stages  []*netHost // the hosts of stages
	random  *rand.Rand
	every   int // events between two faults
	left    int
	longest time.Duration
	deck    []linkFault // in the order in which they come
	counts  map[string]int
}

// linkFault begins a fault at a host and returns the function that ends it.
type linkFault struct {
	name  string
	hosts func(*crew) []*netHost
	begin func(*crew, *netHost) (heal func())
}

// disturb makes faults while a crew works.
func (l *linkFaults) disturb(c *crew) {
	c.tap(func(number int, _ *events.Message) {
		if l.left == 0 || (number-1)%l.every != 0 {
			return
		}
		if len(l.deck) == 0 {
			l.shuffle()
		}
		fault := l.deck[0]
		l.deck = l.deck[1:]
		l.left--
		l.counts[fault.name]++
		h := l.any(fault.hosts(c))
		duration := time.Duration(float64(shortestFault) * math.Pow(float64(l.longest)/float64(shortestFault), l.random.Float64()))
		l.t.Logf("%s, event %d: %s %s for %v", c.run, number, h.name, fault.name, duration.Round(time.Millisecond))
		heal := fault.begin(c, h)
		time.Sleep(duration)
		heal()
	})
}

func (l *linkFaults) any(hosts []*netHost) *netHost { return hosts[l.random.IntN(len(hosts))] }

// shuffle fills the deck with every kind of fault.
func (l *linkFaults) shuffle() {
	all := func(*crew) []*netHost { return l.hosts }
	stages := func(*crew) []*netHost { return l.stages }
	leader := func(c *crew) []*netHost { return []*netHost{l.servers.leader(l.t, l.network, c.run)} }
	isolate := func(_ *crew, h *netHost) func() { return h.separate(l.others(h)...) }
	l.deck = []linkFault{
		{"interface down", all, func(_ *crew, h *netHost) func() { return h.disable() }},
		{"cable pulled", all, func(_ *crew, h *netHost) func() { return l.unplug(h) }},
		{"isolated", all, isolate},
		{"isolated until noticed", stages, l.unnoticed},
		{"its packets lost", all, func(_ *crew, h *netHost) func() { return h.lose(l.others(h)...) }},
		{"apart from another", all, func(_ *crew, h *netHost) func() { return h.separate(l.any(l.others(h))) }},
		{"its packets to another lost", all, func(_ *crew, h *netHost) func() { return h.lose(l.any(l.others(h))) }},
		{"leads the run, isolated", leader, isolate},
		{"leads the run, apart from the other servers", leader, func(_ *crew, h *netHost) func() { return h.separate(l.servers.without(h)...) }},
	}
	if l.slowness != "" {
		l.deck = append(l.deck, linkFault{"slow", all, func(_ *crew, h *netHost) func() { return l.slow(h) }})
	}
	l.random.Shuffle(len(l.deck), func(i, j int) { l.deck[i], l.deck[j] = l.deck[j], l.deck[i] })
}

// noticed bounds the time in which a stage notices that all its packets are lost,
// without an error of the network. It takes 10 to 15 seconds.
const noticed = 45 * time.Second

// unnoticed isolates the host of stages until all of them have noticed it.
func (l *linkFaults) unnoticed(c *crew, h *netHost) (heal func()) {
	lost := func(m *member) int { return strings.Count(m.process.stderr.String(), "connection lost") }
	before := map[*member]int{}
	for _, m := range c.members {
		if hostOf(m.args[1]) == h.name {
			before[m] = lost(m)
		}
	}
	heal = h.separate(l.others(h)...)
	limit := time.After(noticed)
	for m, n := range before {
		for lost(m) == n {
			select {
			case <-m.process.ended:
				return heal // the run is complete
			case <-limit:
				l.t.Errorf("%s has not noticed for %v that its host is isolated", m.args[1], noticed)
				return heal
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return heal
}
