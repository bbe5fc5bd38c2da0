package kafkabus

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"codea1/events"
	"codea1/events/internal/client"

	"github.com/segmentio/kafka-go"
)

const (
	// noteQueue is how many notes wait to be stored at most; noteBatch how many
	// are stored at once.
	noteQueue = 1024
	noteBatch = 256
)

// journal follows the notes of a run and stores those of consumers. One per
// bus and run.
type journal struct {
	*tail
	closing chan struct{}
	queue   chan queued
	written chan struct{}        // closed when the queue is empty and stays so
	ledger  *ledger              // guarded by the tail's mutex
	skipped map[string]time.Time // topics in which no copy is tried until then; guarded by the tail's mutex
	marks   *committer
}

// queued is a note to be stored; stored gets the offset after it.
type queued struct {
	note   note
	stored chan int64
}

// journal returns the journal of a run, creates its topic when there is none,
// and begins to follow it.
func (b *Bus) journal(ctx context.Context, run string) (*journal, error) {
	return perRun(ctx, b, &b.journals, run, journalTopic(run), func(t *tail) *journal {
		j := &journal{
			tail: t, closing: make(chan struct{}), queue: make(chan queued, noteQueue), written: make(chan struct{}), ledger: newLedger(),
			skipped: make(map[string]time.Time),
		}
		j.marks = &committer{journal: j, done: make(chan struct{})}
		t.fold = j.fold
		j.tasks.Go(j.follow)
		j.tasks.Go(j.write)
		return j
	})
}

// close stores what is queued and commits what is finished, for closeTimeout at
// most, and ends.
func (j *journal) close() {
	timer := time.AfterFunc(closeTimeout, j.cancel)
	defer timer.Stop()
	close(j.closing)
	<-j.written
	j.marks.wait()
	j.cancel()
	j.tasks.Wait()
}

// look calls f with the ledger. The channel is closed at its next change.
func (j *journal) look(f func(*ledger)) <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	f(j.ledger)
	return j.changed
}

func (j *journal) fold(r *record) {
	n, err := parseNote(r.value)
	if err == nil {
		j.ledger.apply(&n, r.offset, time.Now())
	} else {
		j.bus.logger.Error("kafka: skipped a record that is no note", "run", j.run, "offset", r.offset, "error", err)
	}
	j.ledger.end = r.offset + 1
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
	defer close(j.written)
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
		end, err := j.persist(notes)
		if err != nil {
			return
		}
		for i := range batch {
			if batch[i].stored != nil {
				batch[i].stored <- end // has room for it
			}
		}
	}
}

// persist stores notes through outages, until the journal closes. Of an outage
// the follower tells; brokers that are there and take no notes would otherwise
// keep consumers waiting without a word.
func (j *journal) persist(notes []note) (int64, error) {
	var refused time.Time // when it was said
	for {
		end, err := j.store(j.ctx, notes)
		if err == nil {
			if !refused.IsZero() {
				j.bus.logger.Info("kafka: journal written again", "run", j.run, "topic", j.topic, "outage", time.Since(refused).Round(time.Millisecond))
			}
			return end, nil
		}
		if refused.IsZero() && isRefusal(err) {
			refused = time.Now()
			j.bus.logger.Warn("kafka: the brokers do not write the journal, trying again", "run", j.run, "topic", j.topic, "error", err)
		}
		if err := client.Pause(j.ctx, j.ctx, retryPause); err != nil {
			return 0, err
		}
	}
}

// isRefusal reports whether a broker has answered that it does not do what it was
// asked for.
func isRefusal(err error) bool {
	var answer kafka.Error
	return errors.As(err, &answer) && answer != kafka.BrokerNotAvailable && !isUnknown(err)
}
