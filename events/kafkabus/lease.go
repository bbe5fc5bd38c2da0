package kafkabus

import (
	"context"
	"encoding/json"
	"fmt"

	"codea1/events"
	"codea1/events/internal/lease"

	"github.com/segmentio/kafka-go"
)

// leaseBook follows the leases of a run. They lie in a topic of their own: an
// owner renews many times a minute, and only who wants a lease reads that. One
// per bus and run.
type leaseBook struct {
	*tail
	held map[string]held // by name; guarded by the tail's mutex
}

// held is the present record of a lease. Its revision is the offset after it.
type held struct {
	record   lease.Record
	revision uint64
}

// leaseNote is one record of the topic. It takes effect when the present record
// has the revision that it names; so a note that is stored twice changes
// nothing, and of two that name one revision the first counts.
type leaseNote struct {
	Name     string       `json:"name"`
	Revision uint64       `json:"revision"` // that is replaced; 0 for none
	Record   lease.Record `json:"record"`
}

// Lease implements events.Leases.
func (b *Bus) Lease(ctx context.Context, config events.LeaseConfig) (events.Lease, error) {
	l, err := lease.Open(ctx, b.life, &register{bus: b, run: config.Run, name: config.Name}, config)
	if err != nil {
		return nil, fmt.Errorf("kafka: lease %s of run %s: %w", config.Name, config.Run, err)
	}
	return l, nil
}

// leaseBook returns the leases of a run, creates their topic when there is
// none, and begins to follow it.
func (b *Bus) leaseBook(ctx context.Context, run string) (*leaseBook, error) {
	return perRun(ctx, b, &b.leases, run, leaseTopic(run), func(t *tail) *leaseBook {
		book := &leaseBook{tail: t, held: make(map[string]held)}
		t.fold = book.fold
		t.tasks.Go(t.follow)
		return book
	})
}

func (l *leaseBook) fold(r *record) {
	var n leaseNote
	if err := json.Unmarshal(r.value, &n); err != nil {
		l.bus.logger.Error("kafka: skipped a record that is no note of a lease", "run", l.run, "offset", r.offset, "error", err)
		return
	}
	if l.held[n.Name].revision == n.Revision {
		l.held[n.Name] = held{n.Record, uint64(r.offset) + 1}
	}
}

func (l *leaseBook) close() {
	l.cancel()
	l.tasks.Wait()
}

// register is one name of the book.
type register struct {
	bus  *Bus
	run  string
	name string
	book *leaseBook // since the first Load
}

// Load implements lease.Register. It asks the broker how far the topic goes: in
// an outage no owner can renew, and silence says nothing.
func (r *register) Load(ctx context.Context) (lease.Record, uint64, error) {
	if r.book == nil {
		book, err := r.bus.leaseBook(ctx, r.run)
		if err != nil {
			return lease.Record{}, 0, err
		}
		r.book = book
	}
	end, err := r.bus.end(ctx, r.book.topic)
	if err != nil {
		return lease.Record{}, 0, err
	}
	present, err := r.at(ctx, end)
	return present.record, present.revision, err
}

// Swap implements lease.Register.
func (r *register) Swap(ctx context.Context, revision uint64, record lease.Record) (uint64, error) {
	value, err := json.Marshal(leaseNote{r.name, revision, record})
	if err != nil {
		return 0, err
	}
	base, err := r.bus.produce(ctx, r.book.topic, 0, []kafka.Record{{Value: kafka.NewBytes(value)}})
	if err != nil {
		return 0, err
	}
	present, err := r.at(ctx, base+1)
	if err != nil {
		return 0, err
	}
	if present.revision != uint64(base)+1 {
		return 0, lease.ErrChanged
	}
	return present.revision, nil
}

// at returns the present record, of the records before offset end at least.
func (r *register) at(ctx context.Context, end int64) (held, error) {
	if err := r.book.wait(ctx, r.book.ctx, end); err != nil {
		return held{}, err
	}
	r.book.mu.Lock()
	defer r.book.mu.Unlock()
	return r.book.held[r.name], nil
}
