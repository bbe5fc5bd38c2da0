package kafkabus

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"

	"codea1/events"
	"codea1/events/internal/client"
)

const (
	// changeQueue bounds the changes that wait to be stored, changeBatch those
	// of one batch.
	changeQueue = 1024
	changeBatch = 256
)

// control reads and writes the control topic of a run. A bus has one for each
// run.
type control struct {
	*tail
	closing   chan struct{}
	queue     chan queued
	written   chan struct{}        // closed when the queue is empty for good
	ledger    *ledger              // guarded by the tail's mutex
	skipped   map[string]time.Time // topics without copies until that time; guarded by the tail's mutex
	committer *committer
}

// queued is a change to store. stored gets the offset after it.
type queued struct {
	change change
	stored chan int64
}

// control returns the control of a run. The first call creates the topic if it
// is missing, and starts to read it.
func (b *Bus) control(ctx context.Context, run string) (*control, error) {
	return perRun(ctx, b, &b.controls, run, controlTopic(run), func(t *tail) *control {
		ctl := &control{
			tail: t, closing: make(chan struct{}), queue: make(chan queued, changeQueue), written: make(chan struct{}), ledger: newLedger(),
			skipped: make(map[string]time.Time),
		}
		ctl.committer = &committer{control: ctl, done: make(chan struct{})}
		t.fold = ctl.fold
		ctl.tasks.Go(ctl.follow)
		ctl.tasks.Go(ctl.write)
		return ctl
	})
}

// close stores the queued changes and commits offsets, within closeTimeout.
func (ctl *control) close() {
	timer := time.AfterFunc(closeTimeout, ctl.cancel)
	defer timer.Stop()
	close(ctl.closing)
	<-ctl.written
	ctl.committer.wait()
	ctl.cancel()
	ctl.tasks.Wait()
}

// look calls f with the ledger. The returned channel is closed at the next
// change.
func (ctl *control) look(f func(*ledger)) <-chan struct{} {
	ctl.mu.Lock()
	defer ctl.mu.Unlock()
	f(ctl.ledger)
	return ctl.changed
}

func (ctl *control) fold(r *record) {
	n, err := parseChange(r.value)
	if err == nil {
		ctl.ledger.apply(&n, r.offset, time.Now())
	} else {
		ctl.bus.logger.Error("kafka: skipped a malformed record", "run", ctl.run, "offset", r.offset, "error", err)
	}
	ctl.ledger.end = r.offset + 1
}

// store writes changes as one batch and returns the offset after them. It makes
// one try.
func (ctl *control) store(ctx context.Context, changes []change) (int64, error) {
	records := make([]kafka.Record, len(changes))
	for i := range changes {
		value, err := json.Marshal(&changes[i])
		if err != nil {
			return 0, err
		}
		records[i].Value = kafka.NewBytes(value)
	}
	base, err := ctl.bus.produce(ctx, ctl.topic, 0, records)
	return base + int64(len(changes)), err
}

// enqueue hands a change to the writer, which stores changes in order, also
// across outages. stored gets the offset after it, unless nil.
func (ctl *control) enqueue(ctx context.Context, n change, stored chan int64) error {
	select {
	case ctl.queue <- queued{n, stored}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-ctl.ctx.Done():
		return events.ErrClosed
	}
}

// write stores queued changes until close is called and the queue is empty. A
// change that is stored twice, because an answer was lost, has an effect once:
// the turn of the second is over.
func (ctl *control) write() {
	defer close(ctl.written)
	for {
		var batch []queued
		select {
		case q := <-ctl.queue:
			batch = append(batch, q)
		case <-ctl.closing:
			select {
			case q := <-ctl.queue:
				batch = append(batch, q)
			default:
				return
			}
		}
	more:
		for len(batch) < changeBatch {
			select {
			case q := <-ctl.queue:
				batch = append(batch, q)
			default:
				break more
			}
		}
		changes := make([]change, len(batch))
		for i := range batch {
			changes[i] = batch[i].change
		}
		end, err := ctl.persist(changes)
		if err != nil {
			return
		}
		for i := range batch {
			if batch[i].stored != nil {
				batch[i].stored <- end // has a buffer of one
			}
		}
	}
}

// persist stores changes, across outages, until close. It waits also when the
// brokers refuse to write.
func (ctl *control) persist(changes []change) (int64, error) {
	var wait client.Wait
	defer wait.End(false)
	for {
		end, err := ctl.store(ctl.ctx, changes)
		if err == nil {
			wait.End(true)
			return end, nil
		}
		if err := ctl.ctx.Err(); err != nil {
			return 0, err
		}
		ctl.bus.failed(&wait, err)
		if err := client.Pause(ctl.ctx, ctl.ctx, retryPause); err != nil {
			return 0, err
		}
	}
}

// isRefusal reports whether the error is the answer of a broker that refuses
// the request.
func isRefusal(err error) bool {
	var answer kafka.Error
	return errors.As(err, &answer) && answer != kafka.BrokerNotAvailable && !isUnknown(err)
}
