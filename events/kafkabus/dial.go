package kafkabus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// dialer opens the connections of a bus and can close all of them. kafka-go
// closes only idle connections, not those that wait for a broker that does not
// answer.
type dialer struct {
	net.Dialer

	mu     sync.Mutex
	closed bool
	open   map[*connection]struct{}
}

type connection struct {
	net.Conn
	dialer *dialer
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	c := &connection{conn, d}
	d.open[c] = struct{}{}
	return c, nil
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.open, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}

func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for c := range d.open {
		_ = c.Conn.Close() // its readers end
	}
}

// diagnoseTimeout bounds the check of one broker.
const diagnoseTimeout = 5 * time.Second

// diagnose returns why this client cannot use its brokers, or nil if one of
// them serves it.
func (c *Config) diagnose(ctx context.Context, transport *kafka.Transport) error {
	dialer := &kafka.Dialer{ClientID: c.Name, TLS: transport.TLS, SASLMechanism: transport.SASL}
	var all []error
	for _, address := range c.Brokers {
		err := tryBroker(ctx, dialer, address)
		if err == nil {
			return nil
		}
		all = append(all, fmt.Errorf("%s: %w", address, err))
	}
	return errors.Join(all...)
}

func tryBroker(ctx context.Context, dialer *kafka.Dialer, address string) error {
	limited, cancel := context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	conn, err := dialer.DialContext(limited, "tcp", address)
	if err == nil {
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(diagnoseTimeout))
		_, err = conn.Brokers()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no broker answers; check the port, and that both sides use the same TLS and password settings: %w", err)
	}
	return err
}
