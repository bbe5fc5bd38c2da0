package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"

	"github.com/dgraph-io/badger/v4"

	"codea1/events"
	"codea1/replay/eventlog/internal/badgerdir"
	"codea1/replay/mistakes"
)

// Incoming is a message with the bus position after it.
type Incoming struct {
	Message  events.Message
	Position events.Position
	// Malformed describes a message with the headers of no event, instead
	// of Message.
	Malformed *events.MalformedError

	from *Record // in another log, or nil
}

// size returns the size of the payload.
func (in *Incoming) size() int {
	if in.Malformed != nil {
		return len(in.Malformed.Data)
	}
	return len(in.Message.Data)
}

// Appended is the result of an append.
type Appended struct {
	First, Last uint64           // sequence numbers of the new events, 0 if there are none
	Messages    []events.Message // the new events, in order
	Duplicates  int              // events that were in the log
	Conflicts   []Conflict
	Quarantined []Quarantined // kept or only counted
}

// Conflict is a message that is not in the log because of another payload under
// an event ID.
type Conflict struct {
	Message events.Message
	// Standing is the ID of the standing event: the log has its first payload. It is
	// the message's own ID if the message has the other payload; otherwise the
	// message descends from the other payload.
	Standing string
}

// Descends reports whether the message descends from a payload that does not
// stand. Its group can then not end.
func (c *Conflict) Descends() bool { return c.Standing != c.Message.ID }

// Append appends the new messages, in order. A message with the ID of an event in
// the log is a duplicate. Sequence numbers count from 1 without a gap. Events, bus position
// and Mistake Book are committed in one transaction and are on disk when Append
// returns; a batch over the limit of a transaction is committed in several, in
// order. With an error, Appended describes the events that were committed. After
// a *DiskFullError Append can be called again; after a failed commit the log
// takes no more events until it is opened again.
func (l *Log) Append(ctx context.Context, batch []Incoming) (Appended, error) {
	pending, err := l.Begin(ctx, batch)
	if err != nil {
		return Appended{}, err
	}
	return pending.Wait()
}

// Pending is a batch that is being committed.
type Pending struct {
	done     chan struct{}
	appended Appended
	err      error
}

// Wait waits until the batch is on disk and returns the result of the append.
func (p *Pending) Wait() (Appended, error) {
	<-p.done
	return p.appended, p.err
}

// Begin is Append that returns while the batch is being committed, so that the
// next one can be prepared. Batches are committed one by one in the order of the
// calls: Begin returns when those before are on disk. After an error no event of
// the batch is in the log. The messages must not change until Wait returns.
func (l *Log) Begin(ctx context.Context, batch []Incoming) (*Pending, error) {
	done, err := l.use()
	if err != nil {
		return nil, err
	}
	p, err := l.begin(ctx, batch, done)
	if err != nil {
		done()
	}
	return p, err
}

// begin calls done when the batch is on disk, unless it returns an error.
func (l *Log) begin(ctx context.Context, incoming []Incoming, done func()) (*Pending, error) {
	if l.options.ReadOnly {
		return nil, fmt.Errorf("log %s: %w", l.dir, ErrReadOnly)
	}
	p := &Pending{done: make(chan struct{})}
	if len(incoming) == 0 {
		close(p.done)
		done()
		return p, nil
	}
	b, err := prepare(ctx, incoming)
	if err != nil {
		return nil, fmt.Errorf("append to log %s: %w", l.dir, err)
	}
	l.admitting.Lock()
	defer l.admitting.Unlock()
	if l.filter == nil {
		l.fillFilter()
	}
	next, err := l.admit(b)
	if err != nil {
		b.free()
		return nil, err
	}
	l.committing.Lock() // until the batch is on disk
	if err := l.mayCommit(ctx, incoming); err != nil {
		l.committing.Unlock()
		b.free()
		return nil, err
	}
	l.tail = next
	l.ahead.Store(l.db.NewTransaction(true))
	go func() {
		defer done()
		p.appended, p.err = l.commitAll(b)
		if unused := l.ahead.Swap(nil); unused != nil {
			unused.Discard()
		}
		b.free()
		l.committing.Unlock()
		close(p.done)
	}()
	return p, nil
}

// mayCommit returns an error if a batch cannot be committed. The caller holds
// l.committing.
func (l *Log) mayCommit(ctx context.Context, batch []Incoming) error {
	if l.failed != nil {
		return l.failed
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("append to log %s: %w", l.dir, err)
	}
	var size uint64
	for i := range batch {
		size += uint64(batch[i].size())
	}
	return l.checkSpace(size)
}

// commitAll commits in as few transactions as Badger takes. The next batch is
// already numbered after all of them, so only a failure ends the loop.
func (l *Log) commitAll(b *batch) (Appended, error) {
	var appended Appended
	rest, size := b.candidates, len(b.candidates)
	for len(rest) > 0 {
		size = min(size, len(rest))
		err := l.commitPart(b.takeTxn(), rest[:size], true)
		if errors.Is(err, badger.ErrTxnTooBig) {
			if size > 1 {
				size /= 2
				continue
			}
			err = l.commitWithoutBook(rest[:1])
		}
		if err != nil {
			l.failed = fmt.Errorf("append to log %s after event %d: %w", l.dir, l.head.seq, l.commitError(err))
			return appended, l.failed
		}
		appended.add(rest[:size])
		rest = rest[size:]
		if l.failed = l.storeState(false); l.failed == nil {
			l.failed = l.storeChunk(false)
		}
		if l.failed != nil {
			return appended, l.failed
		}
	}
	return appended, nil
}

func (l *Log) commitError(err error) error {
	if badgerdir.Caused(err, syscall.ENOSPC) {
		free, _ := l.options.free(l.dir)
		return &DiskFullError{Dir: l.dir, FreeBytes: free, NeedBytes: reserveBytes}
	}
	return err
}

// commitPart commits candidates: in txn, which holds their records, or in a new
// transaction if txn is nil.
func (l *Log) commitPart(txn *badger.Txn, part []candidate, withBook bool) error {
	written := txn != nil
	if !written {
		txn = l.db.NewTransaction(true)
	}
	defer txn.Discard()
	if !written {
		if err := write(txn, part); err != nil {
			return err
		}
	}
	return l.commit(txn, part, withBook)
}

// write adds the records and refusals of candidates to txn.
func write(txn *badger.Txn, part []candidate) error {
	for i := range part {
		c := &part[i]
		switch c.outcome {
		case admitted:
			record := badger.NewEntry(eventKey(c.seq), c.value).WithMeta(typeCodes[c.in.Message.Type])
			if err := txn.SetEntry(record); err != nil {
				return err
			}
			if c.rewarded != nil && changesBook(c.rewarded) {
				if err := txn.Set(deltaKey(c.seq), encodeDeltas(c.rewarded)); err != nil {
					return err
				}
			}
		case refused:
			if err := txn.Set(refusedKey(refusal{c.id, c.payload}), c.standing[:]); err != nil {
				return err
			}
		case quarantined:
			if c.value == nil {
				continue // it is only counted
			}
			if err := txn.Set(quarantineKey(c.quarantined.Number), c.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// commit adds the head and the changes of the book to a transaction that holds
// the records of candidates, and commits it. After an error nothing has changed.
// Without withBook the stored book is marked as stale.
func (l *Log) commit(txn *badger.Txn, part []candidate, withBook bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next, compacted, quarantine := l.head, l.compacted, l.quarantine
	var changes []mistakes.Change
	byCandidate := make([][]mistakes.Change, len(part))
	large := uint64(0) // last event in the value log
	for i := range part {
		c := &part[i]
		next.position = c.in.Position
		if c.outcome == quarantined {
			quarantine = c.counted
		}
		if c.outcome != admitted {
			continue
		}
		next.seq, next.chain = c.seq, c.chain
		if len(c.value) >= badgerdir.ValueThreshold {
			large = c.seq
		}
		if c.in.from != nil && c.in.from.Compacted {
			compacted.to, compacted.events = c.seq, compacted.events+1
		}
		if c.rewarded != nil && changesBook(c.rewarded) {
			byCandidate[i] = l.book.Apply(c.rewarded)
			changes = append(changes, byCandidate[i]...)
		}
	}
	err := l.writeEnds(txn, &next, compacted, quarantine, large)
	if err == nil {
		err = l.writeBook(txn, next.seq, changes, withBook)
	}
	if err == nil {
		err = txn.Commit()
	}
	if err != nil {
		l.book.Revert(changes)
		return err
	}
	l.head, l.compacted, l.quarantine = next, compacted, quarantine
	l.recent.addAll(part)
	l.applyToState(part, byCandidate)
	return nil
}

// writeEnds adds the new ends of the log to txn.
func (l *Log) writeEnds(txn *badger.Txn, next *head, compacted compacted, quarantine Quarantine, large uint64) error {
	if err := txn.Set(keyHead, next.encode()); err != nil {
		return err
	}
	if large != 0 {
		if err := txn.Set(keyLarge, encodeSeq(large)); err != nil {
			return err
		}
	}
	if quarantine != l.quarantine {
		value, err := json.Marshal(quarantine)
		if err == nil {
			err = txn.Set(keyQuarantine, value)
		}
		if err != nil {
			return err
		}
	}
	if compacted != l.compacted {
		return txn.Set(keyTokens, compacted.encode())
	}
	return nil
}

// commitWithoutBook commits one event with more changes of the book than a
// transaction takes, and then the whole book.
func (l *Log) commitWithoutBook(one []candidate) error {
	if err := l.commitPart(nil, one, false); err != nil {
		return err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.storeBook()
}

func (a *Appended) add(part []candidate) {
	for i := range part {
		c := &part[i]
		m := c.in.Message
		switch c.outcome {
		case admitted:
			if a.First == 0 {
				a.First = c.seq
				a.Messages = make([]events.Message, 0, len(part)-i)
			}
			a.Last = c.seq
			a.Messages = append(a.Messages, m)
		case duplicate:
			a.Duplicates++
		case replaced, refused:
			a.Conflicts = append(a.Conflicts, Conflict{Message: m, Standing: c.standing.String()})
		case quarantined:
			a.Quarantined = append(a.Quarantined, *c.quarantined)
		}
	}
}

// Rebase sets the log's position to one of another bus, which must hold every
// event of the log before it.
func (l *Log) Rebase(position events.Position) error {
	done, err := l.use()
	if err != nil {
		return err
	}
	defer done()
	if l.options.ReadOnly {
		return fmt.Errorf("log %s: %w", l.dir, ErrReadOnly)
	}
	l.committing.Lock()
	defer l.committing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.head
	next.position = position
	if err := l.db.Update(func(txn *badger.Txn) error { return txn.Set(keyHead, next.encode()) }); err != nil {
		return fmt.Errorf("log %s: %w", l.dir, l.commitError(err))
	}
	l.head = next
	return nil
}
