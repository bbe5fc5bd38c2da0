package kafkabus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"codea1/events"

	"github.com/segmentio/kafka-go"
)

const (
	// followBytes bounds one request for notes.
	followBytes = 4 << 20
	// followWait is how long a broker holds a request when no note has come.
	followWait = 500 * time.Millisecond
	// noteQueue is how many notes wait to be stored at most; noteBatch how many
	// are stored at once.
	noteQueue = 1024
	noteBatch = 256
)

// journal follows the notes of a run and stores those of consumers. One per
// bus and run.
type journal struct {
	bus   *Bus
	run   string
	topic string

	ctx     context.Context // ends the follower
	cancel  context.CancelFunc
	closing chan struct{}
	queue   chan queued
	tasks   sync.WaitGroup

	mu      sync.Mutex
	ledger  *ledger
	failed  error         // why the follower has ended
	changed chan struct{} // closed at the next change
}

// queued is a note to be stored; stored gets the offset after it.
type queued struct {
	note   note
	stored chan int64
}

// journal returns the journal of a run, creates its topic when there is none,
// and begins to follow it.
func (b *Bus) journal(ctx context.Context, run string) (*journal, error) {
	b.mu.Lock()
	j := b.journals[run]
	b.mu.Unlock()
	if j != nil {
		return j, nil
	}
	if err := events.ValidName(run); err != nil {
		return nil, err
	}
	topic := journalTopic(run)
	if err := b.create(ctx, b.topicConfig(topic, 1)); err != nil {
		return nil, err
	}
	// A new topic is known to its leader a moment later.
	for {
		_, err := b.end(ctx, topic)
		if err == nil {
			break
		}
		if err := ended(ctx, b.ctx); err != nil {
			return nil, err
		}
		if !errors.Is(err, kafka.UnknownTopicOrPartition) && !errors.Is(err, kafka.LeaderNotAvailable) && !errors.Is(err, kafka.NotLeaderForPartition) {
			return nil, err
		}
		if err := pause(ctx, b.ctx, retryPause/4); err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil {
		return nil, events.ErrClosed
	}
	if j := b.journals[run]; j != nil {
		return j, nil
	}
	j = &journal{
		bus: b, run: run, topic: topic, closing: make(chan struct{}), queue: make(chan queued, noteQueue),
		ledger: newLedger(), changed: make(chan struct{}),
	}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	j.tasks.Go(j.follow)
	j.tasks.Go(j.write)
	b.journals[run] = j
	return j, nil
}

// close stores what is queued, for closeTimeout at most, and ends.
func (j *journal) close() {
	timer := time.AfterFunc(closeTimeout, j.cancel)
	defer timer.Stop()
	close(j.closing)
	j.tasks.Wait()
}

// look calls f with the ledger. The channel is closed at its next change.
func (j *journal) look(f func(*ledger)) <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	f(j.ledger)
	return j.changed
}

// wait blocks until the notes before offset end are in the ledger.
func (j *journal) wait(ctx, owner context.Context, end int64) error {
	for {
		var reached bool
		var failed error
		changed := j.look(func(l *ledger) { reached, failed = l.end >= end, j.failed })
		if reached {
			return nil
		}
		if failed != nil {
			return failed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-owner.Done():
			return events.ErrClosed
		}
	}
}

// follow folds notes until the journal closes. It logs an outage once when it
// begins and once when it ends.
func (j *journal) follow() {
	var since time.Time // of the outage
	for offset := int64(0); j.ctx.Err() == nil; {
		list, err := j.bus.fetch(j.ctx, j.topic, 0, offset, followBytes, followWait)
		switch {
		case j.ctx.Err() != nil:
			return
		case errors.Is(err, kafka.OffsetOutOfRange):
			j.fail(fmt.Errorf("kafka: run %s: %w: the journal ends before offset %d", j.run, events.ErrPosition, offset))
			return
		case err != nil:
			if since.IsZero() {
				since = time.Now()
				j.bus.logger.Warn("kafka: journal out of reach, trying again", "run", j.run, "error", err)
			}
			_ = pause(j.ctx, j.ctx, retryPause)
			continue
		case !since.IsZero():
			j.bus.logger.Info("kafka: journal followed again", "run", j.run, "outage", time.Since(since).Round(time.Millisecond))
			since = time.Time{}
		}
		if len(list) > 0 {
			j.fold(list)
			offset = list[len(list)-1].offset + 1
		}
	}
}

func (j *journal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failed = err
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *journal) fold(list []record) {
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range list {
		n, err := parseNote(list[i].value)
		if err == nil {
			j.ledger.apply(&n, list[i].offset, now)
		} else {
			j.bus.logger.Error("kafka: skipped a record that is no note", "run", j.run, "offset", list[i].offset, "error", err)
		}
		j.ledger.end = list[i].offset + 1
	}
	close(j.changed)
	j.changed = make(chan struct{})
}

// store writes notes as one batch and returns the offset after them.
func (j *journal) store(ctx context.Context, notes []note) (int64, error) {
	records := make([]kafka.Record, len(notes))
	for i := range notes {
		value, err := json.Marshal(&notes[i])
		if err != nil {
			return 0, err
		}
		records[i].Value = kafka.NewBytes(value)
	}
	base, err := j.bus.produce(ctx, j.topic, 0, records)
	return base + int64(len(notes)), err
}

// enqueue hands a note to the writer, which stores notes in the order they
// came, through outages. stored, when not nil, gets the offset after it.
func (j *journal) enqueue(ctx context.Context, n note, stored chan int64) error {
	select {
	case j.queue <- queued{n, stored}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-j.ctx.Done():
		return events.ErrClosed
	}
}

// write stores queued notes until the journal closes and its queue is empty.
// Storing a note twice, when an answer is lost, changes nothing: the second
// finds its turn over.
func (j *journal) write() {
	defer j.cancel()
	for {
		var batch []queued
		select {
		case q := <-j.queue:
			batch = append(batch, q)
		case <-j.closing:
			select {
			case q := <-j.queue:
				batch = append(batch, q)
			default:
				return
			}
		}
	more:
		for len(batch) < noteBatch {
			select {
			case q := <-j.queue:
				batch = append(batch, q)
			default:
				break more
			}
		}
		notes := make([]note, len(batch))
		for i := range batch {
			notes[i] = batch[i].note
		}
		end, err := j.store(j.ctx, notes)
		for ; err != nil; end, err = j.store(j.ctx, notes) {
			if pause(j.ctx, j.ctx, retryPause) != nil {
				return
			}
		}
		for i := range batch {
			if batch[i].stored != nil {
				batch[i].stored <- end // has room for it
			}
		}
	}
}
