package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace without a name. It ends with the test process
// and the processes in it, so a killed test leaves nothing behind.
type namespace struct {
	t    *testing.T
	file *os.File
}

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	n := &namespace{t: t}
	var err error
	onThread(func() {
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			n.file, err = os.Open("/proc/thread-self/ns/net")
		}
	})
	if err != nil {
		required(t, fmt.Sprintf("a network namespace needs root: %v", err))
	}
	t.Cleanup(func() { n.file.Close() })
	return n
}

// onThread calls do on a thread that ends with it, because the thread may be in
// another namespace then.
func onThread(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		do()
	}()
	<-done
}

// in calls do in the namespace. A process that do starts stays there.
func (n *namespace) in(do func()) {
	var err error
	onThread(func() {
		if err = unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err == nil {
			do()
		}
	})
	if err != nil {
		n.t.Errorf("enter a network namespace: %v", err)
	}
}

// path is the name of the namespace for other processes.
func (n *namespace) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

// try runs a command in the namespace.
func (n *namespace) try(command string) error {
	var text []byte
	var err error
	n.in(func() {
		words := strings.Fields(command)
		text, err = exec.Command(words[0], words[1:]...).CombinedOutput()
	})
	if err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, text)
	}
	return nil
}

func (n *namespace) run(commands ...string) {
	n.t.Helper()
	for _, c := range commands {
		if err := n.try(c); err != nil {
			n.t.Error(err)
		}
	}
}

// network is a switch and its hosts, each in a namespace of its own.
type network struct {
	*namespace // of the switch
	hosts      []*netHost
	slowness   string // the queue of a slow link; empty if the kernel has none
}

// netHost is a computer with one link to the switch.
type netHost struct {
	*namespace
	name, port, address string // port is its link at the switch
}

// newNetwork starts a network. It needs root and the commands of iproute2.
func newNetwork(t *testing.T, hosts ...string) *network {
	t.Helper()
	for _, command := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(command); err != nil {
			required(t, "network namespaces need the commands ip and tc of iproute2")
		}
	}
	n := &network{namespace: newNamespace(t)}
	if err := n.try("ip link add br0 type bridge"); err != nil {
		t.Skipf("the kernel has no bridges: %v", err)
	}
	n.run("ip link set lo up", "ip link set br0 up", "ip address add 198.18.0.1/24 dev br0")
	for i, name := range hosts {
		h := &netHost{namespace: newNamespace(t), name: name, port: fmt.Sprintf("port%d", i), address: fmt.Sprintf("198.18.0.%d", 10+i)}
		n.run("ip link add "+h.port+" type veth peer name eth0 netns "+h.path(), "ip link set "+h.port+" master br0 up")
		h.run("ip link set lo up", "ip link set eth0 up", "ip address add "+h.address+"/24 dev eth0")
		n.hosts = append(n.hosts, h)
	}
	for _, queue := range []string{"netem delay 100ms 50ms loss 1% rate 1mbit", "tbf rate 256kbit burst 8kb latency 500ms"} {
		if n.try("tc qdisc add dev lo root "+queue) == nil {
			n.run("tc qdisc delete dev lo root")
			n.slowness = queue
			break
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return n
}

// host returns the host with a name.
func (n *network) host(name string) *netHost {
	for _, h := range n.hosts {
		if h.name == name {
			return h
		}
	}
	n.t.Fatalf("no host %s", name)
	return nil
}

// others returns all hosts but h.
func (n *network) others(h *netHost) []*netHost {
	return slices.DeleteFunc(slices.Clone(n.hosts), func(o *netHost) bool { return o == h })
}

// nobody is the hardware address of no host. Packets to it are lost without an
// answer to the sender: the worst case, because no connection is reset.
const nobody = "02:00:00:00:00:01"

// lose loses all packets from h to others, until heal.
func (h *netHost) lose(others ...*netHost) (heal func()) {
	for _, o := range others {
		h.run("ip neighbour replace " + o.address + " lladdr " + nobody + " dev eth0 nud permanent")
	}
	return func() {
		for _, o := range others {
			h.run("ip neighbour delete " + o.address + " dev eth0")
		}
	}
}

// separate loses all packets between h and others, until heal.
func (h *netHost) separate(others ...*netHost) (heal func()) {
	heals := []func(){h.lose(others...)}
	for _, o := range others {
		heals = append(heals, o.lose(h))
	}
	return func() {
		for _, heal := range heals {
			heal()
		}
	}
}

// disable switches the network interface of h off. Its processes get errors.
func (h *netHost) disable() (heal func()) {
	h.run("ip link set eth0 down")
	return func() { h.run("ip link set eth0 up") }
}

// unplug pulls the cable of a host.
func (n *network) unplug(h *netHost) (plug func()) {
	n.run("ip link set " + h.port + " down")
	return func() { n.run("ip link set " + h.port + " up") }
}

// slow makes the link of a host slow in both directions.
func (n *network) slow(h *netHost) (heal func()) {
	h.run("tc qdisc replace dev eth0 root " + n.slowness)
	n.run("tc qdisc replace dev " + h.port + " root " + n.slowness)
	return func() {
		h.run("tc qdisc delete dev eth0 root")
		n.run("tc qdisc delete dev " + h.port + " root")
	}
}

// door returns an address of this process's network that leads to an address of
// the switch's network.
func (n *network) door(address string) string {
	n.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			outside, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer outside.Close()
				var inside net.Conn
				n.in(func() { inside, err = net.DialTimeout("tcp", address, time.Second) })
				if err != nil {
					return
				}
				defer inside.Close()
				go func() {
					io.Copy(inside, outside)
					inside.Close()
				}()
				io.Copy(outside, inside)
			}()
		}
	}()
	return l.Addr().String()
}
