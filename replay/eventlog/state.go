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

// A log that is open for writing keeps the state of the run at its end, and
// stores snapshots of it. Later events are folded in when the log is opened, or
// when the state at a position is asked for.

const (
	// snapshotEvery is the minimum number of events between two snapshots; a
	// snapshot is also stored when the log closes. It bounds the events that are
	// folded after a crash.
	snapshotEvery = 8192
	// snapshotBytes bounds the cost of snapshots per event: a large state is
	// stored less often.
	snapshotBytes = 32
	// maxStateBytes is less than Badger's limit for a value. A larger state is not
	// stored: it can be folded from the events.
	maxStateBytes = 32 << 20
)

var typeOf = func() (types [256]events.Type) {
	for t, code := range typeCodes {
		types[code] = t
	}
	return types
}()

// StateAt returns the state of the run after event seq. It depends only on the
// events up to there.
func (l *Log) StateAt(ctx context.Context, seq uint64) (*state.State, error) {
	v, closeView, err := l.view()
	if err != nil {
		return nil, err
	}
	defer closeView()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, at := state.New(), uint64(0)
	if stored, storedAt, err := v.state(); err == nil && storedAt <= seq {
		s, at = stored, storedAt
	}
	return s, v.fold(ctx, s, at, seq)
}

// fold applies the events after from, up to to, to the state at from.
func (v view) fold(ctx context.Context, s *state.State, from, to uint64) error {
	if from >= to {
		return nil
	}
	book, err := v.bookAt(ctx, from)
	if err != nil {
		return err
	}
	return v.read(ctx, ReadOptions{From: from + 1, To: to}, func(item *badger.Item) (bool, error) {
		e := state.Event{Type: typeOf[item.UserMeta()]}
		e.Seq, _ = seqOf(item.Key())
		if !state.ReadsGroup(e.Type) {
			s.Apply(&e)
			return true, nil
		}
		r, _, err := v.record(item)
		if err != nil {
			return false, err
		}
		e.Group = r.Message.Group
		if state.ReadsPayload(e.Type) {
			decoded, err := r.Decode()
			if err == nil {
				e.Payload = decoded.Payload
			} else if !IsUnreadable(err) || errors.Is(err, events.ErrNewerSchema) {
				return false, err // without a newer payload the state would be wrong
			}
		}
		if rewarded, ok := e.Payload.(*events.GroupRewarded); ok {
			e.Changes = book.Apply(rewarded)
		}
		s.Apply(&e)
		return true, nil
	})
}

// applyToState applies committed candidates to the state at the end of the log.
// changes are those of the Mistake Book, by candidate.
func (l *Log) applyToState(part []candidate, changes [][]mistakes.Change) {
	for i := range part {
		if c := &part[i]; c.outcome == admitted {
			m := &c.in.Message
			l.state.Apply(&state.Event{Seq: c.seq, Type: m.Type, Group: m.Group, Payload: c.decoded, Changes: changes[i]})
		}
	}
}

var errState = errors.New("stored state does not match the log")

// encodeState returns the value of keyState: version, last event and its chain
// hash, hash of the state, state.
func encodeState(s *state.State, at uint64, chain Hash) []byte {
	body := s.Encode()
	hash := hashOf(body)
	b := binary.BigEndian.AppendUint64([]byte{state.Version}, at)
	b = append(append(b, chain[:]...), hash[:]...)
	return append(b, body...)
}

// state returns the stored state and its last event. It returns an error for a
// state of another version, of another log, or a damaged one.
func (v view) state() (*state.State, uint64, error) {
	raw, err := v.get(keyState)
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
		item, err := v.event(at)
		if err != nil {
			return nil, 0, errState
		}
		r, _, err := v.record(item)
		if err != nil || !bytes.Equal(r.Chain[:], raw[9:9+len(r.Chain)]) {
			return nil, 0, errState
		}
	}
	s, err := state.Decode(body)
	return s, at, err
}

// courseOf returns the course of a run at a state.
func courseOf(s *state.State) events.Course {
	c := events.NewCourse()
	c.Attempts, c.Ended = int(s.Metrics.Events[events.TypeRunStarted]), s.Cursor.Finished != ""
	c.Planned, c.Models = s.Cursor.Planned, s.Cursor.Models
	for _, v := range s.Checkpoints {
		c.Versions[v.Role] = max(c.Versions[v.Role], v.Version)
		if v.Version == 0 {
			c.Start[v.Role] = v.SHA256
		}
	}
	return c
}

// loadState sets the state at the end of a log that is opened for writing.
func (l *Log) loadState(v view) error {
	s, at, err := v.state()
	if err != nil || at > l.head.seq {
		if l.head.seq > 0 {
			l.options.Logger.Info("fold the state of the run from the log", "dir", l.dir, "reason", err)
		}
		s, at = state.New(), 0
	}
	if err := v.fold(context.Background(), s, at, l.head.seq); err != nil {
		return err
	}
	l.state, l.stored = s, at
	return nil
}

// storeState stores a snapshot of the state if one is due. When the log closes,
// one is due after any event.
func (l *Log) storeState(closing bool) error {
	since := l.head.seq - l.stored
	if since == 0 || !closing && since < max(snapshotEvery, l.storedBytes/snapshotBytes) {
		return nil
	}
	value := encodeState(l.state, l.head.seq, l.head.chain)
	l.storedBytes = uint64(len(value))
	if len(value) > maxStateBytes {
		l.options.Logger.Warn("the state of the run is too large to store: the log will take longer to open", "dir", l.dir, "bytes", len(value))
	} else if err := l.db.Update(func(txn *badger.Txn) error { return txn.Set(keyState, value) }); err != nil {
		return fmt.Errorf("store the state of log %s: %w", l.dir, err)
	}
	l.stored = l.head.seq
	return nil
}
