package eventlog

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/dgraph-io/badger/v4"

	"codea1/events"
	"codea1/replay/eventlog/internal/badgerdir"
	"codea1/replay/mistakes"
)

// Entry is a message with the bus position after it.
type Entry struct {
	Message  events.Message
	Position events.Position

	from *Record // of another log, or nil
}

// Appended says what became of a batch.
type Appended struct {
	First, Last uint64           // sequence numbers given, 0 when none
	Messages    []events.Message // the events that are new in the log, in order
	Duplicates  int              // events that were there already
	Conflicts   []Conflict
	Rejected    []Rejection
}

// Conflict is a message that is not in the log because of another payload
// under one event ID.
type Conflict struct {
	Message events.Message
	// Standing is the ID of the event whose first payload stands. It is the
	// message's own ID when the message is the one that lost; otherwise the
	// message descends from the one that lost.
	Standing string
}

// Descends reports whether the message descends from a payload that lost, and
// its group so cannot come to an end.
func (c *Conflict) Descends() bool { return c.Standing != c.Message.ID }

// Rejection is a message that is not in the log because no one can read it.
type Rejection struct {
	Message events.Message
	Err     error
}

// Append puts the messages that are new into the log, in order, each event
// once: a message whose ID is there already is skipped. Sequence numbers count
// from 1 without a gap. Events, bus position and Mistake Book are committed in
// one transaction, and are on disk when Append returns; a batch too big for a
// transaction is committed in several, in order. With an error, Appended still
// tells what was committed. After a *DiskFullError Append can be called again;
// after a failed commit the log takes nothing more until it is opened anew.
func (l *Log) Append(ctx context.Context, entries []Entry) (Appended, error) {
	pending, err := l.Begin(ctx, entries)
	if err != nil {
		return Appended{}, err
	}
	return pending.Wait()
}

// Pending is a batch on its way to the disk.
type Pending struct {
	done     chan struct{}
	appended Appended
	err      error
}

// Wait returns what Append returns for the batch, once it is on disk.
func (p *Pending) Wait() (Appended, error) {
	<-p.done
	return p.appended, p.err
}

// Begin is Append that returns while the batch is still on its way to the disk,
// so that the next one can be read, hashed and looked up meanwhile. Batches are
// committed one by one in the order of the calls: Begin returns once those
// before are on disk. With an error nothing of the batch will be in the log.
// The entries must not change until Wait returns.
func (l *Log) Begin(ctx context.Context, entries []Entry) (*Pending, error) {
	done, err := l.use()
	if err != nil {
		return nil, err
	}
	p, err := l.begin(ctx, entries, done)
	if err != nil {
		done()
	}
	return p, err
}

// begin calls done when the batch is on disk, unless it returns an error.
func (l *Log) begin(ctx context.Context, entries []Entry, done func()) (*Pending, error) {
	if l.options.ReadOnly {
		return nil, fmt.Errorf("log %s: %w", l.dir, ErrReadOnly)
	}
	p := &Pending{done: make(chan struct{})}
	if len(entries) == 0 {
		close(p.done)
		done()
		return p, nil
	}
	b, err := prepare(ctx, entries)
	if err != nil {
		return nil, fmt.Errorf("append to log %s: %w", l.dir, err)
	}
	l.admitting.Lock()
	defer l.admitting.Unlock()
	if l.seen == nil {
		l.remember()
	}
	next, err := l.admit(b)
	if err != nil {
		b.free()
		return nil, err
	}
	l.committing.Lock() // until the batch is on disk
	if err := l.mayCommit(ctx, entries); err != nil {
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

// mayCommit says what is against a commit. The caller holds l.committing.
func (l *Log) mayCommit(ctx context.Context, entries []Entry) error {
	if l.failed != nil {
		return l.failed
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("append to log %s: %w", l.dir, err)
	}
	var size uint64
	for i := range entries {
		size += uint64(len(entries[i].Message.Data))
	}
	return l.checkSpace(size)
}

// commitAll commits in as few transactions as Badger takes. The next batch
// stands behind all of them already, so only a failure stops it.
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
			err = l.commitApart(rest[:1])
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
		free, _ := l.free(l.dir)
		return &DiskFullError{Dir: l.dir, FreeBytes: free, NeedBytes: l.options.ReserveBytes}
	}
	return err
}

// commitPart commits candidates in a transaction that has them written, or in a
// new one.
func (l *Log) commitPart(txn *badger.Txn, part []candidate, withBook bool) error {
	if txn == nil {
		txn = l.db.NewTransaction(true)
		defer txn.Discard()
		if err := write(txn, part); err != nil {
			return err
		}
	} else {
		defer txn.Discard()
	}
	return l.commit(txn, part, withBook)
}

// write puts into txn what the log keeps of each candidate.
func write(txn *badger.Txn, part []candidate) error {
	for i := range part {
		c := &part[i]
		switch c.outcome {
		case admitted:
			record := badger.NewEntry(eventKey(c.seq), c.value).WithMeta(typeCodes[c.entry.Message.Type])
			if err := txn.SetEntry(record); err != nil {
				return err
			}
			if c.rewarded != nil && hasDeltas(c.rewarded) {
				if err := txn.Set(deltaKey(c.seq), encodeDeltas(c.rewarded)); err != nil {
					return err
				}
			}
		case refused:
			if err := txn.Set(refusedKey(refusal{c.id, c.payload}), c.standing[:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// commit adds to a transaction that has candidates written the head after them
// and the book's changes, and commits it. On an error nothing has changed.
// Without withBook the stored book is marked stale instead of being changed.
func (l *Log) commit(txn *badger.Txn, part []candidate, withBook bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next, bare := l.head, l.bare
	var changes []mistakes.Change
	byCandidate := make([][]mistakes.Change, len(part))
	large := uint64(0) // last event that goes to the value log
	for i := range part {
		c := &part[i]
		next.position = c.entry.Position
		if c.outcome != admitted {
			continue
		}
		next.seq, next.chain = c.seq, c.chain
		if len(c.value) >= badgerdir.ValueThreshold {
			large = c.seq
		}
		if c.entry.from != nil && c.entry.from.Compacted {
			bare.to, bare.events = c.seq, bare.events+1
		}
		if c.rewarded != nil && hasDeltas(c.rewarded) {
			byCandidate[i] = l.book.Apply(c.rewarded)
			changes = append(changes, byCandidate[i]...)
		}
	}
	err := l.writeEnds(txn, &next, bare, large)
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
	l.head, l.bare = next, bare
	l.recent.addAll(part)
	l.fold(part, byCandidate)
	return nil
}

// writeEnds puts into txn where the log ends after it.
func (l *Log) writeEnds(txn *badger.Txn, next *head, bare bare, large uint64) error {
	if err := txn.Set(keyHead, next.encode()); err != nil {
		return err
	}
	if large != 0 {
		if err := txn.Set(keyLarge, encodeSeq(large)); err != nil {
			return err
		}
	}
	if bare != l.bare {
		return txn.Set(keyTokens, bare.encode())
	}
	return nil
}

// commitApart commits one event whose changes of the book do not fit into a
// transaction: the event first, then the whole book.
func (l *Log) commitApart(one []candidate) error {
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
		m := c.entry.Message
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
		case rejected:
			a.Rejected = append(a.Rejected, Rejection{Message: m, Err: c.err})
		}
	}
}

// Rebase makes the log stand at a position of another bus, which has to hold
// every event of the log up to there.
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
