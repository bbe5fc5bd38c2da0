package natsbus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
	"codea1/events/internal/lease"
)

const (
	// leaseBucketBytes bounds the leases of a run, which are a few records of
	// 200 bytes.
	leaseBucketBytes = 1 << 20
	leaseBytes       = 4 << 10
)

// leaseBucket returns the name of the key-value bucket of a run's leases, one
// key each. `nats kv ls` lists it.
func leaseBucket(run string) string { return prefix + "-" + run }

// Lease implements events.Leases.
func (b *Bus) Lease(ctx context.Context, config events.LeaseConfig) (events.Lease, error) {
	l, err := lease.Open(ctx, b.life, &register{bus: b, run: config.Run, key: config.Name}, config)
	if err != nil {
		return nil, fmt.Errorf("nats: lease %s of run %s: %w", config.Name, config.Run, err)
	}
	return l, nil
}

// leases returns the bucket of a run and creates it if it is missing.
func (b *Bus) leases(ctx context.Context, run string) (jetstream.KeyValue, error) {
	var kv jetstream.KeyValue
	err := b.askSoon(ctx, func(ctx context.Context) error {
		var err error
		kv, err = b.js.KeyValue(ctx, leaseBucket(run))
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			kv, err = b.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
				Bucket: leaseBucket(run), Description: "leases of codea1 run " + run,
				History: 1, MaxValueSize: leaseBytes, MaxBytes: leaseBucketBytes,
				Storage: jetstream.FileStorage, Replicas: b.config.Replicas,
			})
			if errors.Is(err, jetstream.ErrBucketExists) {
				kv, err = b.js.KeyValue(ctx, leaseBucket(run))
			}
		}
		return err
	})
	return kv, err
}

// register is the lease.Register of one key. A revision is a stream sequence.
type register struct {
	bus *Bus
	run string
	key string
	kv  jetstream.KeyValue // nil before the first Load
}

// Load implements lease.Register.
func (r *register) Load(ctx context.Context) (lease.Record, uint64, error) {
	if r.kv == nil {
		kv, err := r.bus.leases(ctx, r.run)
		if err != nil {
			return lease.Record{}, 0, err
		}
		r.kv = kv
	}
	var entry jetstream.KeyValueEntry
	err := r.bus.askSoon(ctx, func(ctx context.Context) error {
		var err error
		entry, err = r.kv.Get(ctx, r.key)
		return err
	})
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return lease.Record{}, 0, nil
	}
	if err != nil {
		return lease.Record{}, 0, err
	}
	var record lease.Record
	if err := json.Unmarshal(entry.Value(), &record); err != nil {
		return lease.Record{}, 0, fmt.Errorf("bucket %s, key %s: %w: %w", r.kv.Bucket(), r.key, events.ErrMalformed, err)
	}
	return record, entry.Revision(), nil
}

// Swap implements lease.Register.
func (r *register) Swap(ctx context.Context, revision uint64, record lease.Record) (uint64, error) {
	data, err := json.Marshal(record)
	if err != nil {
		return 0, err
	}
	var swapped uint64
	err = r.bus.askSoon(ctx, func(ctx context.Context) error {
		var err error
		swapped, err = r.kv.Update(ctx, r.key, data, revision)
		return err
	})
	if isTaken(err) {
		return 0, lease.ErrChanged
	}
	return swapped, err
}
