package kafkabus

import (
	"context"
	"errors"
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
// payload without a change is never read. Of several changes with one type and
// group the first one with an event as payload counts (standing.go).
// Publishing another event returns ErrLineage, or a *ForeignEventError after the
// other messages are stored.
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
	var foreign []error
	for _, run := range runs {
		err := b.publishRun(ctx, run, byRun[run])
		if err != nil {
			if err := client.Ended(ctx, b.ctx); err != nil {
				return err
			}
			err = fmt.Errorf("kafka: publish to run %s: %w", run, err)
		}
		if err != nil && !errors.Is(err, events.ErrForeignEvent) {
			return err
		}
		foreign = append(foreign, err)
	}
	return errors.Join(foreign...)
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
	p := publication{control: ctl, payloads: newPayloadReader(ctl), written: make(map[location]bool)}
	for {
		if err := p.look(ctx, messages); err != nil {
			return err
		}
		if len(p.missing) == 0 {
			return errors.Join(p.foreign...)
		}
		if err := p.store(ctx); err != nil {
			return err
		}
		messages = p.missing
	}
}

// publication is one call of Publish for one run.
type publication struct {
	control  *control
	payloads *payloadReader
	missing  []*events.Message // that the ledger does not have
	replaces []*int64          // control offsets of the last changes of their type and group
	written  map[location]bool // payloads of this call
	foreign  []error
}

// look finds the missing ones among messages.
func (p *publication) look(ctx context.Context, messages []*events.Message) error {
	p.missing, p.replaces = nil, nil
	claims := make([][]storedEvent, len(messages))
	p.control.look(func(l *ledger) {
		for i, m := range messages {
			claims[i] = l.claimsOn(m.Type, m.Group)
		}
	})
	for i, m := range messages {
		isStored, err := p.control.stored(ctx, p.payloads, m, claims[i], p.written)
		switch {
		case errors.Is(err, events.ErrForeignEvent):
			p.foreign = append(p.foreign, err)
		case err != nil:
			return err
		case !isStored:
			var last *int64
			if n := len(claims[i]); n > 0 {
				last = &claims[i][n-1].at
				p.control.bus.logger.Error("kafka: a payload that is no event has the name of an event, which is stored beside it",
					"run", p.control.run, "type", m.Type, "group", m.Group)
			}
			p.missing, p.replaces = append(p.missing, m), append(p.replaces, last)
		}
	}
	return nil
}

// store stores the missing messages and waits until the ledger has them.
func (p *publication) store(ctx context.Context) error {
	ctl, list := p.control, p.missing
	b := ctl.bus
	changes := make([]change, len(list))
	byPartition := make(map[topicPartition][]int)
	for i, m := range list {
		at := topicPartition{typ: m.Type, partition: partitionOf(m.Group, b.partitions[m.Type])}
		byPartition[at] = append(byPartition[at], i)
		changes[i] = change{Kind: kindEvent, ID: m.ID, Type: m.Type, Group: m.Group, Partition: at.partition, Bytes: len(m.Data), Replaces: p.replaces[i]}
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
	for i := range changes {
		p.written[location{topicPartition{typ: changes[i].Type, partition: changes[i].Partition}, changes[i].Offset}] = true
	}
	// Another process may have stored another event first.
	return ctl.wait(ctx, b.ctx, end)
}

// partitionOf returns the partition of a group. Readers take the partition from
// the change, so the number of partitions may change.
func partitionOf(group string, partitions int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(group))
	return int(h.Sum32() % uint32(partitions))
}
