package kafkabus

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/segmentio/kafka-go"

	"codea1/events"
	"codea1/events/internal/client"
	"codea1/events/internal/lease"
)

// leaseFollower reads the leases of a run. They have a topic of their own,
// because owners renew many times a minute and few processes want a lease. A
// bus has one for each run.
type leaseFollower struct {
	*tail
	held map[string]leaseState // by name; guarded by the tail's mutex
}

// leaseState is the present record of a lease. Its revision is the offset after
// it.
type leaseState struct {
	record   lease.Record
	revision uint64
}

// leaseChange is one record of the topic. It takes effect if the present record
// has the revision that it names. So a change that is stored twice has an
// effect once, and of two changes that name one revision the first counts.
type leaseChange struct {
	Name     string       `json:"name"`
	Revision uint64       `json:"revision"` // the replaced revision; 0 for none
	Record   lease.Record `json:"record"`
}

// Lease implements events.Leases.
func (b *Bus) Lease(ctx context.Context, config events.LeaseConfig) (events.Lease, error) {
	l, err := lease.Open(ctx, b.life, &leaseRegister{bus: b, run: config.Run, name: config.Name}, config)
	if err != nil {
		return nil, fmt.Errorf("kafka: lease %s of run %s: %w", config.Name, config.Run, err)
	}
	return l, nil
}

// leaseFollower returns the leases of a run. The first call creates the topic
// if it is missing, and starts to read it.
func (b *Bus) leaseFollower(ctx context.Context, run string) (*leaseFollower, error) {
	return perRun(ctx, b, &b.leases, run, leaseTopic(run), func(t *tail) *leaseFollower {
		leases := &leaseFollower{tail: t, held: make(map[string]leaseState)}
		t.fold = leases.fold
		t.tasks.Go(t.follow)
		return leases
	})
}

func (l *leaseFollower) fold(r *record) {
	var n leaseChange
	if err := json.Unmarshal(r.value, &n); err != nil {
		l.bus.logger.Error("kafka: skipped a malformed lease record", "run", l.run, "offset", r.offset, "error", err)
		return
	}
	if l.held[n.Name].revision == n.Revision {
		l.held[n.Name] = leaseState{n.Record, uint64(r.offset) + 1}
	}
}

func (l *leaseFollower) close() {
	l.cancel()
	l.tasks.Wait()
}

// leaseRegister is the lease.Register of one name.
type leaseRegister struct {
	bus    *Bus
	run    string
	name   string
	leases *leaseFollower // nil before the first Load
}

// Load implements lease.Register. It asks the broker for the end of the topic,
// because during an outage no owner can renew.
func (r *leaseRegister) Load(ctx context.Context) (lease.Record, uint64, error) {
	if r.leases == nil {
		leases, err := r.bus.leaseFollower(ctx, r.run)
		if err != nil {
			return lease.Record{}, 0, err
		}
		r.leases = leases
	}
	end, err := r.bus.endNow(ctx, r.leases.topic)
	if err != nil {
		return lease.Record{}, 0, orOutage(err)
	}
	present, err := r.at(ctx, end)
	return present.record, present.revision, err
}

// Swap implements lease.Register.
func (r *leaseRegister) Swap(ctx context.Context, revision uint64, record lease.Record) (uint64, error) {
	value, err := json.Marshal(leaseChange{r.name, revision, record})
	if err != nil {
		return 0, err
	}
	base, err := r.bus.produce(ctx, r.leases.topic, 0, []kafka.Record{{Value: kafka.NewBytes(value)}})
	if err != nil {
		return 0, orOutage(err)
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

// at returns the present record, after all records before offset end are read.
func (r *leaseRegister) at(ctx context.Context, end int64) (leaseState, error) {
	limited, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	err := r.leases.wait(limited, r.leases.ctx, end)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = fmt.Errorf("%w: topic %s", client.ErrOutage, r.leases.topic)
	}
	if err != nil {
		return leaseState{}, err
	}
	r.leases.mu.Lock()
	defer r.leases.mu.Unlock()
	return r.leases.held[r.name], nil
}
