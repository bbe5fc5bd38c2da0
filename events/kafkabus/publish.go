package kafkabus

import (
	"context"
	"fmt"
	"hash/fnv"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"codea1/events"
	"codea1/events/internal/client"
)

const (
	// batchBytes bounds the payloads of one request. A larger payload has a
	// request of its own.
	batchBytes = 1 << 20
	// publishRequests bounds the concurrent requests of one Publish.
	publishRequests = 8
)

// Publish implements events.Bus. It stores the payloads in any order, and then
// one batch of changes per run, all or none, in the order of messages. A
// payload without a change is never read. Of two events with one type and group
// the one with the first change counts; publishing the other returns
// ErrLineage.
func (b *Bus) Publish(ctx context.Context, messages ...events.Message) error {
	if err := client.Ended(ctx, b.ctx); err != nil {
		return err
	}
	if err := client.ValidateBatch(messages); err != nil {
		return fmt.Errorf("kafka: publish %w", err)
	}
	var runs []string
	byRun := make(map[string][]*events.Message)
	for i := range messages {
		m := &messages[i]
		if byRun[m.Run] == nil {
			runs = append(runs, m.Run)
		}
		byRun[m.Run] = append(byRun[m.Run], m)
	}
	for _, run := range runs {
		if err := b.publishRun(ctx, run, byRun[run]); err != nil {
			if err := client.Ended(ctx, b.ctx); err != nil {
				return err
			}
			return fmt.Errorf("kafka: publish to run %s: %w", run, err)
		}
	}
	return nil
}

func (b *Bus) publishRun(ctx context.Context, run string, messages []*events.Message) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(b.ctx, cancel)
	defer stop()
	ctl, err := b.control(ctx, run)
	if err != nil {
		return err
	}
	list, err := ctl.missing(messages)
	if err != nil || len(list) == 0 {
		return err
	}
	changes := make([]change, len(list))
	byPartition := make(map[topicPartition][]int)
	for i, m := range list {
		at := topicPartition{typ: m.Type, partition: partitionOf(m.Group, b.partitions[m.Type])}
		byPartition[at] = append(byPartition[at], i)
		changes[i] = change{Kind: kindEvent, ID: m.ID, Type: m.Type, Group: m.Group, Partition: at.partition, Bytes: len(m.Data)}
	}
	requests, sending := errgroup.WithContext(ctx)
	requests.SetLimit(publishRequests)
	for at, indexes := range byPartition {
		for len(indexes) > 0 {
			size, n := 0, 0
			for n < len(indexes) && (n == 0 || size+len(list[indexes[n]].Data) <= batchBytes) {
				size += len(list[indexes[n]].Data)
				n++
			}
			batch := indexes[:n]
			indexes = indexes[n:]
			requests.Go(func() error {
				var base int64
				err := b.ask(sending, func() (err error) {
					records := make([]kafka.Record, len(batch)) // a try reads them to their end
					for k, i := range batch {
						records[k] = toKafka(list[i])
					}
					base, err = b.produce(sending, payloadTopic(at.typ), at.partition, records)
					return err
				})
				for k, i := range batch {
					changes[i].Offset = base + int64(k)
				}
				return err
			})
		}
	}
	if err := requests.Wait(); err != nil {
		return err
	}
	var end int64
	if err := b.ask(ctx, func() (err error) {
		end, err = ctl.store(ctx, changes)
		return err
	}); err != nil {
		return err
	}
	// Another process may have stored another event first.
	if err := ctl.wait(ctx, b.ctx, end); err != nil {
		return err
	}
	_, err = ctl.missing(list)
	return err
}

// missing returns the messages that the ledger does not have.
func (ctl *control) missing(messages []*events.Message) ([]*events.Message, error) {
	var list []*events.Message
	var err error
	ctl.look(func(l *ledger) {
		for _, m := range messages {
			var stands bool
			if stands, err = l.check(m); err != nil {
				return
			}
			if !stands {
				list = append(list, m)
			}
		}
	})
	return list, err
}

// partitionOf returns the partition of a group. Readers take the partition from
// the change, so the number of partitions may change.
func partitionOf(group string, partitions int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(group))
	return int(h.Sum32() % uint32(partitions))
}
