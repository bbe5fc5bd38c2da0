package connect

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// reachTimeout bounds the wait for one server.
const reachTimeout = 5 * time.Second

// CheckReachable returns an error unless a server of the URL accepts a connection
// now. A stage waits for its bus; a command that somebody watches does not.
func (f *Flags) CheckReachable(ctx context.Context) error {
	if err := f.ValidateURL(); err != nil {
		return err
	}
	dialer := net.Dialer{Timeout: reachTimeout}
	var tried []error
	for _, address := range f.addresses() {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		tried = append(tried, err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("--bus: no server answers at %s: %w; start the bus, or correct the address", PublicURL(f.URL), tried[len(tried)-1])
}

// addresses returns host and port of the servers of a valid URL.
func (f *Flags) addresses() []string {
	servers, isKafka := strings.CutPrefix(f.URL, KafkaScheme)
	addresses := strings.Split(servers, ",")
	if isKafka {
		return addresses
	}
	ports := map[string]string{"nats": "4222", "tls": "4222", "ws": "80", "wss": "443"}
	for i, server := range addresses {
		if u, err := url.Parse(server); err == nil {
			addresses[i] = net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), ports[u.Scheme]))
		}
	}
	return addresses
}
