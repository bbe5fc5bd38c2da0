package eventlog

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/klauspost/compress/zstd"

	"codea1/events"
	"codea1/replay/eventlog/internal/badgerdir"
)

// Compaction is the result of Compact.
type Compaction struct {
	To          uint64 `json:"to"`           // no payload up to this event has tokens, except those counted by Whole
	Events      uint64 `json:"compacted"`    // payloads compacted by this call
	Whole       uint64 `json:"whole"`        // payloads that keep their tokens: they are not well-formed msgpack
	BytesBefore uint64 `json:"bytes_before"` // size of the records of Events
	BytesAfter  uint64 `json:"bytes_after"`
	Waiting     bool   `json:"waiting"` // the disk space is not freed: another process reads the log
}

// compacted says how far a log is compacted.
type compacted struct {
	to      uint64 // last event that compaction has passed
	events  uint64 // compacted payloads
	garbage uint64 // bytes of them that the store's files still hold
}

func (c *compacted) encode() []byte {
	raw := binary.BigEndian.AppendUint64(nil, c.to)
	raw = binary.BigEndian.AppendUint64(raw, c.events)
	return binary.BigEndian.AppendUint64(raw, c.garbage)
}

func (v view) compaction() (compacted, error) {
	raw, err := v.get(keyTokens)
	if err != nil {
		return compacted{}, v.log.corrupt(0, "end of compaction cannot be read", err)
	}
	if raw == nil {
		return compacted{}, nil
	}
	if len(raw) != 24 {
		return compacted{}, v.log.corrupt(0, "end of compaction is malformed", nil)
	}
	return compacted{binary.BigEndian.Uint64(raw), binary.BigEndian.Uint64(raw[8:]), binary.BigEndian.Uint64(raw[16:])}, nil
}

const (
	// segmentEvents and segmentBytes bound the records of one commit.
	segmentEvents = 256
	segmentBytes  = 4 << 20
)

// Compact removes token ids and log-probs from the payloads up to event to, in
// segments that are committed one by one, and frees their disk space. Texts,
// versions, verdicts, rewards and changes of the Mistake Book stay, and the chain
// does not change. A model cannot be trained again on compacted events; Settled
// returns the last event before a group that is still to be trained on.
//
// Events can be appended meanwhile. After an interruption the next call
// continues. progress, unless nil, is called with the last event that is done.
func (l *Log) Compact(ctx context.Context, to uint64, progress func(done uint64)) (Compaction, error) {
	return l.compact(ctx, to, 1, progress)
}

// compact is Compact that frees disk space only if the files hold as many bytes
// of garbage.
func (l *Log) compact(ctx context.Context, to, leastGarbage uint64, progress func(done uint64)) (Compaction, error) {
	done, err := l.use()
	if err != nil {
		return Compaction{}, err
	}
	defer done()
	if l.options.ReadOnly {
		return Compaction{}, fmt.Errorf("log %s: %w", l.dir, ErrReadOnly)
	}
	l.compacting.Lock()
	defer l.compacting.Unlock()
	last, _ := l.Last()
	to = min(to, last)
	var report Compaction
	for l.compactedTo().to < to {
		if err := l.compactSegment(ctx, to, &report); err != nil {
			return report, err
		}
		if progress != nil {
			progress(l.compactedTo().to)
		}
	}
	report.To = l.compactedTo().to
	if l.compactedTo().garbage < leastGarbage {
		return report, nil
	}
	report.Waiting, err = l.freeSpace(ctx)
	return report, err
}

// Settled returns the last event up to event to that Compact can pass without
// removing the tokens of a group that is still to be trained on. A step may be
// sampled before the step before it is trained.
func (l *Log) Settled(ctx context.Context, to uint64) (uint64, error) {
	if to == 0 { // Read takes 0 as the end
		return 0, nil
	}
	trained, err := Trained(ctx, l)
	if err != nil {
		return 0, err
	}
	for r, err := range l.Read(ctx, ReadOptions{From: l.compactedTo().to + 1, To: to, Types: TokenTypes}) {
		if err != nil {
			return 0, err
		}
		if step, ok := StepOf(&r.Message); ok && step > trained {
			return r.Seq - 1, nil
		}
	}
	return to, nil
}

// Compacted returns the last event that compaction has passed, and the number of
// compacted payloads.
func (l *Log) Compacted() (to, payloads uint64) {
	c := l.compactedTo()
	return c.to, c.events
}

func (l *Log) compactedTo() compacted {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.compacted
}

// rewrite is a compacted record that replaces the one under its key.
type rewrite struct {
	key   []byte
	value []byte
	code  byte
}

// compactSegment compacts the next events, up to event to or the bounds of a
// segment.
func (l *Log) compactSegment(ctx context.Context, to uint64, report *Compaction) error {
	next := l.compactedTo()
	from := next.to + 1
	next.to = to
	var segment []rewrite
	part, size := *report, 0
	v := view{l, l.db.NewTransaction(false)}
	defer v.txn.Discard()
	err := v.read(ctx, ReadOptions{From: from, To: to, Types: TokenTypes}, func(item *badger.Item) (bool, error) {
		r, value, err := v.record(item)
		if err != nil || r.Compacted {
			return true, err
		}
		compacted, err := l.withoutTokens(&r)
		if err != nil {
			return false, err
		}
		if compacted == nil {
			part.Whole++
			return true, nil
		}
		segment = append(segment, rewrite{item.KeyCopy(nil), compacted, item.UserMeta()})
		part.Events++
		part.BytesBefore += uint64(len(value))
		part.BytesAfter += uint64(len(compacted))
		next.events++
		next.garbage += uint64(len(value))
		size += len(compacted)
		if len(segment) < segmentEvents && size < segmentBytes {
			return true, nil
		}
		next.to = r.Seq
		return false, nil
	})
	if err != nil {
		return err
	}
	if err := l.commitSegment(segment, next); err != nil {
		return err
	}
	*report = part
	return nil
}

// withoutTokens returns the compacted record; nil if it cannot be compacted. A
// damaged payload is an error.
func (l *Log) withoutTokens(r *Record) ([]byte, error) {
	if r.bare == nil {
		return nil, nil
	}
	raw, err := r.Message.Raw()
	if err != nil {
		return nil, l.corrupt(r.Seq, "payload", err)
	}
	if err := r.checkHash(hashOf(raw)); err != nil {
		return nil, l.corrupt(r.Seq, "payload", err)
	}
	var ok bool
	raw, r.Tokens, ok = dropTokens(raw)
	r.Compacted = true
	if !ok || r.checkHash(hashOf(raw)) != nil {
		return nil, l.corrupt(r.Seq, "payload without tokens does not match the chain", nil)
	}
	r.Message.Encoding, r.Message.Data = events.EncodingNone, raw
	if len(raw) >= events.ZstdThreshold {
		r.Message.Encoding, r.Message.Data = events.EncodingZstd, compressor().EncodeAll(raw, nil)
	}
	value, _ := layOut(make([]byte, 0, recordRoom(&r.Message)), r)
	copy(value[1:], r.Chain[:])
	return value, nil
}

// compressor compresses better and more slowly than the one for events on a bus.
var compressor = sync.OnceValue(func() *zstd.Encoder {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // its options are constants
	}
	return encoder
})

func (l *Log) commitSegment(segment []rewrite, after compacted) error {
	l.committing.Lock()
	defer l.committing.Unlock()
	if l.failed != nil {
		return l.failed
	}
	var size uint64
	for i := range segment {
		size += uint64(len(segment[i].value))
	}
	if err := l.checkSpace(size); err != nil {
		return err
	}
	txn := l.db.NewTransaction(true)
	defer txn.Discard()
	for _, r := range segment {
		if err := txn.SetEntry(badger.NewEntry(r.key, r.value).WithMeta(r.code)); err != nil {
			return err
		}
		if len(r.value) >= badgerdir.ValueThreshold {
			// It is now the last event in the value log.
			if err := txn.Set(keyLarge, r.key[1:]); err != nil {
				return err
			}
		}
	}
	if err := txn.Set(keyTokens, after.encode()); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := txn.Commit(); err != nil {
		l.failed = fmt.Errorf("compact log %s after event %d: %w", l.dir, l.compacted.to, l.commitError(err))
		return l.failed
	}
	l.compacted = after
	return nil
}
