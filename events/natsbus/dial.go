package natsbus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"

	"github.com/nats-io/nats.go"

	"codea1/events/internal/client"
)

// dial connects to the first server that can be reached. If none can, it fails
// or, with config.Wait, tries again until ctx ends: in a cluster workers may
// start before the server.
func dial(ctx context.Context, config Config, opts []nats.Option) (*nats.Conn, error) {
	outages := client.Outages{Logger: config.Logger, Lost: "nats: cannot connect, trying again", Back: "nats: connected"}
	var wait client.Wait
	for attempt := 1; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		conn, err := nats.Connect(config.URL, opts...)
		if err == nil {
			wait.End(true)
			return conn, nil
		}
		passing := isUnreachable(err)
		if bad := (*url.Error)(nil); errors.As(err, &bad) {
			passing, err = false, bad.Err // without the address, which may contain a password
		}
		err = fmt.Errorf("nats: cannot connect to %s: %w", PublicURL(config.URL), err)
		if !passing || !config.Wait {
			return nil, err
		}
		outages.Failed(&wait, 0, err)
		if err := client.Pause(ctx, context.Background(), reconnectDelay(attempt)); err != nil {
			return nil, err
		}
	}
}

// isUnreachable reports whether a server may be reached later. A refused login,
// an untrusted certificate or a malformed address stays as it is.
func isUnreachable(err error) bool {
	var network net.Error
	var alert tls.AlertError
	var address *net.AddrError
	switch {
	case errors.As(err, &alert), errors.As(err, &address):
		return false
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout), errors.Is(err, nats.ErrStaleConnection), errors.Is(err, io.EOF):
		return true
	}
	return errors.As(err, &network)
}
