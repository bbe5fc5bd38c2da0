package eventlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"codea1/events"
	"codea1/replay/mistakes"
	"codea1/replay/state"
)

// The folds of package state follow a log that is open for writing, and lie in
// it as a snapshot that says at which event it stands. What came after is folded
// in when the log is opened, or when someone asks how things stood.

const (
	// snapshotEvery is after how many events at least the state is stored again;
	// it also is when the log closes. It bounds what is folded after a crash.
	snapshotEvery = 8192
	// snapshotBytes bounds what an event pays for that: a large state is stored
	// less often.
	snapshotBytes = 32
	// maxStateBytes is below what Badger takes as a value. A larger state is not
	// stored: it follows from the events.
	maxStateBytes = 32 << 20
)

var typeOf = func() (types [256]events.Type) {
	for t, code := range typeCodes {
		types[code] = t
	}
	return types
}()

// State returns where the run stands after the last event.
func (l *Log) State(ctx context.Context) (*state.State, error) {
	last, _ := l.Last()
	return l.StateAt(ctx, last)
}

// StateAt returns where the run stood after event seq. It depends on the events
// up to there and on nothing else.
func (l *Log) StateAt(ctx context.Context, seq uint64) (*state.State, error) {
	done, err := l.use()
	if err != nil {
		return nil, err
	}
	defer done()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	s, at := state.New(), uint64(0)
	if stored, standsAt, err := l.readState(txn); err == nil && standsAt <= seq {
		s, at = stored, standsAt
	}
	return s, l.foldState(ctx, txn, s, at, seq)
}

// foldState brings a state that stands at event from to event to.
func (l *Log) foldState(ctx context.Context, txn *badger.Txn, s *state.State, from, to uint64) error {
	if from >= to {
		return nil
	}
	book, err := l.BookAt(ctx, from)
	if err != nil {
		return err
	}
	return l.scan(ctx, txn, ScanOptions{From: from + 1, To: to}, func(item *badger.Item) (bool, error) {
		e := state.Event{Type: typeOf[item.UserMeta()]}
		e.Seq, _ = seqOf(item.Key())
		if !state.ReadsGroup(e.Type) {
			s.Apply(&e)
			return true, nil
		}
		r, _, err := l.record(item)
		if err != nil {
			return false, err
		}
		e.Group = r.Message.Group
		if state.ReadsPayload(e.Type) {
			decoded, err := r.Decode()
			if err == nil {
				e.Payload = decoded.Payload
			} else if !IsUnreadable(err) {
				return false, err
			}
		}
		if rewarded, ok := e.Payload.(*events.GroupRewarded); ok {
			e.Changes = book.Apply(rewarded)
		}
		s.Apply(&e)
		return true, nil
	})
}

// fold brings the state of an open log past candidates that are committed.
// changes are those of the Mistake Book, by candidate.
func (l *Log) fold(part []candidate, changes [][]mistakes.Change) {
	for i := range part {
		if c := &part[i]; c.outcome == admitted {
			m := &c.entry.Message
			l.state.Apply(&state.Event{Seq: c.seq, Type: m.Type, Group: m.Group, Payload: c.decoded, Changes: changes[i]})
		}
	}
}

var errState = errors.New("stored state does not fit the log")

// encodeState returns what is stored under keyState: version, the event at
// which the state stands and its chain hash, the hash of the state, the state.
func encodeState(s *state.State, at uint64, chain Hash) []byte {
	body := s.Encode()
	hash := hashOf(body)
	b := binary.BigEndian.AppendUint64([]byte{state.Version}, at)
	b = append(append(b, chain[:]...), hash[:]...)
	return append(b, body...)
}

// readState returns the stored state and where it stands. One of another
// version, another log or a damaged one is worth nothing.
func (l *Log) readState(txn *badger.Txn) (*state.State, uint64, error) {
	raw, err := get(txn, keyState)
	if err != nil {
		return nil, 0, err
	}
	const header = 1 + 8 + 2*len(Hash{})
	if len(raw) < header || raw[0] != state.Version {
		return nil, 0, errState
	}
	at, body := binary.BigEndian.Uint64(raw[1:]), raw[header:]
	hash := hashOf(body)
	if !bytes.Equal(hash[:], raw[header-len(hash):header]) {
		return nil, 0, errState
	}
	if at > 0 {
		item, err := txn.Get(eventKey(at))
		if err != nil {
			return nil, 0, errState
		}
		r, _, err := l.record(item)
		if err != nil || !bytes.Equal(r.Chain[:], raw[9:9+len(r.Chain)]) {
			return nil, 0, errState
		}
	}
	s, err := state.Decode(body)
	return s, at, err
}

// loadState brings a log that is opened for writing to the state of its end.
func (l *Log) loadState(txn *badger.Txn) error {
	s, at, err := l.readState(txn)
	if err != nil || at > l.head.seq {
		if l.head.seq > 0 {
			l.options.Logger.Info("fold the state of the run from the log", "dir", l.dir, "why", err)
		}
		s, at = state.New(), 0
	}
	if err := l.foldState(context.Background(), txn, s, at, l.head.seq); err != nil {
		return err
	}
	l.state, l.stored = s, at
	return nil
}

// storeState stores the state if it is due: often enough, and seldom enough for
// its size. A state that is stored once more in the end is due after any event.
func (l *Log) storeState(end bool) error {
	since := l.head.seq - l.stored
	if since == 0 || !end && since < max(snapshotEvery, l.storedBytes/snapshotBytes) {
		return nil
	}
	value := encodeState(l.state, l.head.seq, l.head.chain)
	if len(value) > maxStateBytes {
		l.options.Logger.Warn("the state of the run is too large to be stored: opening the log will take longer", "dir", l.dir, "bytes", len(value))
		l.stored, l.storedBytes = l.head.seq, uint64(len(value))
		return nil
	}
	if err := l.db.Update(func(txn *badger.Txn) error { return txn.Set(keyState, value) }); err != nil {
		return fmt.Errorf("store the state of log %s: %w", l.dir, err)
	}
	l.stored, l.storedBytes = l.head.seq, uint64(len(value))
	return nil
}
