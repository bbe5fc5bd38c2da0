package natsbus

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"

	"codea1/events"
	"codea1/events/internal/client"
)

const (
	// tapMessages and tapBytes bound the messages that wait in a tap. Later ones
	// are dropped.
	tapMessages = 64 << 10
	tapBytes    = 64 << 20
	// tapRecent is the number of newest events of which a tap shows no second
	// copy. A publisher repeats a message within seconds.
	tapRecent = 4096
)

// AddressFile returns the file with the address of the embedded server on a store
// directory, while it runs.
func AddressFile(storeDir string) string { return filepath.Join(storeDir, "address") }

// Tap follows the events of a run that are published after the call. It uses a
// subscription alone, which TapUser may have: nothing is stored on the server,
// and the server disconnects a tap that does not read. The positions are empty.
// A tap misses the events of an outage.
func (b *Bus) Tap(run string) (events.Reader, error) {
	if err := validNames(run); err != nil {
		return nil, err
	}
	sub, err := b.conn.SubscribeSync(runSubjects(run))
	if err == nil {
		err = errors.Join(sub.SetPendingLimits(tapMessages, tapBytes), b.conn.FlushTimeout(requestTimeout))
	}
	if err == nil {
		err = b.conn.LastError() // a refused subscription has no other answer
	}
	if err != nil {
		return nil, fmt.Errorf("nats: tap of run %s: %w", run, err)
	}
	t := &tap{bus: b, sub: sub, session: client.NewSession(), seen: make(map[string]bool, tapRecent)}
	return t, b.life.Track(t)
}

type tap struct {
	bus     *Bus
	sub     *nats.Subscription
	session *client.Session
	seen    map[string]bool // IDs of recent
	recent  [tapRecent]string
	oldest  int
}

// Next implements events.Reader. It leaves out messages that are no events.
func (t *tap) Next(ctx context.Context) (events.Message, events.Position, error) {
	if err := t.session.Begin(ctx); err != nil {
		return events.Message{}, "", err
	}
	defer t.session.End()
	both, release := client.Both(ctx, t.session.Context())
	defer release()
	for {
		msg, err := t.sub.NextMsgWithContext(both)
		switch {
		case errors.Is(err, nats.ErrSlowConsumer):
			dropped, _ := t.sub.Dropped()
			t.bus.logger.Warn("nats: events come faster than the tap reads; some are left out", "left_out", dropped)
			continue
		case client.Ended(ctx, t.session.Context()) != nil:
			return events.Message{}, "", client.Ended(ctx, t.session.Context())
		case err != nil:
			return events.Message{}, "", t.bus.orClosed(fmt.Errorf("nats: tap: %w", err))
		}
		if token := strings.Split(msg.Subject, ".")[2]; token == deadToken || token == retryToken {
			continue
		}
		m, err := parse(msg.Subject, msg.Header, msg.Data)
		if err != nil {
			t.bus.logger.Debug("nats: the tap leaves out a message that is no event", "error", err)
			continue
		}
		if t.isNew(m.ID) {
			return m, "", nil
		}
	}
}

// isNew reports whether no recent event has the ID.
func (t *tap) isNew(id string) bool {
	if t.seen[id] {
		return false
	}
	delete(t.seen, t.recent[t.oldest])
	t.recent[t.oldest], t.seen[id] = id, true
	t.oldest = (t.oldest + 1) % tapRecent
	return true
}

// Close implements events.Reader.
func (t *tap) Close() error {
	t.session.Close(func() {
		_ = t.sub.Unsubscribe() // the connection may be lost
		t.bus.life.Forget(t)
	})
	return nil
}
