package replay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"codea1/events"
	"codea1/replay/mistakes"
	"github.com/dgraph-io/badger/v4"
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
	done, err := l.use()
	if err != nil {
		return Appended{}, err
	}
	defer done()
	if l.options.ReadOnly {
		return Appended{}, fmt.Errorf("log %s: %w", l.dir, ErrReadOnly)
	}
	if len(entries) == 0 {
		return Appended{}, nil
	}
	l.appending.Lock()
	defer l.appending.Unlock()
	if l.failed != nil {
		return Appended{}, l.failed
	}
	var size uint64
	for i := range entries {
		size += uint64(len(entries[i].Message.Data))
	}
	if err := l.checkSpace(size); err != nil {
		return Appended{}, err
	}
	candidates, err := prepare(ctx, entries)
	if err != nil {
		return Appended{}, fmt.Errorf("append to log %s: %w", l.dir, err)
	}
	if err := l.admit(candidates); err != nil {
		return Appended{}, err
	}
	return l.commitAll(ctx, candidates)
}

// commitAll commits in as few transactions as Badger takes.
func (l *Log) commitAll(ctx context.Context, rest []candidate) (Appended, error) {
	var appended Appended
	size := len(rest)
	for len(rest) > 0 {
		if err := ctx.Err(); err != nil {
			return appended, err
		}
		size = min(size, len(rest))
		err := l.commit(rest[:size], true)
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
		if l.failed = l.storeState(false); l.failed != nil {
			return appended, l.failed
		}
	}
	return appended, nil
}

func (l *Log) commitError(err error) error {
	if says(err, syscall.ENOSPC) {
		free, _ := l.free(l.dir)
		return &DiskFullError{Dir: l.dir, FreeBytes: free, NeedBytes: l.options.ReserveBytes}
	}
	return err
}

// commit writes candidates, the head after them, and the book's changes, in
// one transaction. On an error nothing has changed. Without withBook the
// stored book is marked stale instead of being changed.
func (l *Log) commit(part []candidate, withBook bool) error {
	txn := l.db.NewTransaction(true)
	defer txn.Discard()
	l.mu.Lock()
	defer l.mu.Unlock()
	next, bare := l.head, l.bare
	var changes []mistakes.Change
	byCandidate := make([][]mistakes.Change, len(part))
	large := uint64(0) // last event that goes to the value log
	write := func() error {
		for i := range part {
			c := &part[i]
			next.position = c.entry.Position
			switch c.outcome {
			case admitted:
				next.seq, next.chain = c.seq, c.chain
				if len(c.value) >= valueThreshold {
					large = c.seq
				}
				if c.entry.from != nil && c.entry.from.Compacted {
					bare.to, bare.events = c.seq, bare.events+1
				}
				at := place{c.seq, c.payload}
				record := badger.NewEntry(eventKey(c.seq), c.value).WithMeta(typeCodes[c.entry.Message.Type])
				if err := txn.SetEntry(record); err != nil {
					return err
				}
				if err := txn.Set(idKey(c.id), at.encode()); err != nil {
					return err
				}
				if c.rewarded != nil && hasDeltas(c.rewarded) {
					if err := txn.Set(deltaKey(c.seq), encodeDeltas(c.rewarded)); err != nil {
						return err
					}
					byCandidate[i] = l.book.Apply(c.rewarded)
					changes = append(changes, byCandidate[i]...)
				}
			case refused:
				if err := txn.Set(refusedKey(refusal{c.id, c.payload}), c.standing[:]); err != nil {
					return err
				}
			}
		}
		if err := txn.Set(keyHead, next.encode()); err != nil {
			return err
		}
		if large != 0 {
			if err := txn.Set(keyLarge, binary.BigEndian.AppendUint64(nil, large)); err != nil {
				return err
			}
		}
		if bare != l.bare {
			if err := txn.Set(keyTokens, bare.encode()); err != nil {
				return err
			}
		}
		if err := l.writeBook(txn, next.seq, changes, withBook); err != nil {
			return err
		}
		return txn.Commit()
	}
	if err := write(); err != nil {
		l.book.Revert(changes)
		return err
	}
	l.head, l.bare = next, bare
	l.fold(part, byCandidate)
	return nil
}

// commitApart commits one event whose changes of the book do not fit into a
// transaction: the event first, then the whole book.
func (l *Log) commitApart(one []candidate) error {
	if err := l.commit(one, false); err != nil {
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
