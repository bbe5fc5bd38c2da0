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

// Compaction says what Compact did.
type Compaction struct {
	To          uint64 // no payload up to this event has tokens, but those of Whole
	Events      uint64 // payloads that have lost their tokens now
	Whole       uint64 // payloads of now that keep their tokens: they are not well-formed msgpack
	BytesBefore uint64 // size of the records of Events
	BytesAfter  uint64
	Waiting     bool // the files still hold what is gone: another process reads the log
}

// bare says how far the payloads of a log have lost their tokens.
type bare struct {
	to     uint64 // number of the last event looked at
	events uint64 // payloads that have lost them
	held   uint64 // bytes that the store's files still hold of them
}

func (b *bare) encode() []byte {
	raw := binary.BigEndian.AppendUint64(nil, b.to)
	raw = binary.BigEndian.AppendUint64(raw, b.events)
	return binary.BigEndian.AppendUint64(raw, b.held)
}

func (l *Log) readBare(txn *badger.Txn) (bare, error) {
	raw, err := get(txn, keyTokens)
	if err != nil {
		return bare{}, l.corrupt(0, "end of compaction cannot be read", err)
	}
	if raw == nil {
		return bare{}, nil
	}
	if len(raw) != 24 {
		return bare{}, l.corrupt(0, "end of compaction is malformed", nil)
	}
	return bare{binary.BigEndian.Uint64(raw), binary.BigEndian.Uint64(raw[8:]), binary.BigEndian.Uint64(raw[16:])}, nil
}

const (
	// segmentEvents and segmentBytes bound what is compacted in one commit.
	segmentEvents = 256
	segmentBytes  = 4 << 20
)

// Compact takes token ids and log-probs out of the payloads of the events up to
// event to, in segments that are each committed as a whole, and gives their
// space back. Texts, versions, verdicts, rewards and changes of the Mistake Book stay, and
// so does the chain. A model cannot be trained again on what is compacted;
// Settled says how far none is still to be trained.
//
// Appending goes on meanwhile. What ctx interrupts, the next call goes on with.
// progress, unless nil, hears up to which event it is done.
func (l *Log) Compact(ctx context.Context, to uint64, progress func(done uint64)) (Compaction, error) {
	return l.compact(ctx, to, 1, progress)
}

// compact is Compact that gives space back only when the files hold so many
// bytes of garbage.
func (l *Log) compact(ctx context.Context, to, collectFrom uint64, progress func(done uint64)) (Compaction, error) {
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
	for l.compacted().to < to {
		if err := l.compactSegment(ctx, to, &report); err != nil {
			return report, err
		}
		if progress != nil {
			progress(l.compacted().to)
		}
	}
	report.To = l.compacted().to
	if l.compacted().held < collectFrom {
		return report, nil
	}
	report.Waiting, err = l.collect(ctx)
	return report, err
}

// Settled returns the last event up to event to that Compact can go to without
// taking the tokens of a group that is still to be trained on: a step can be
// sampled before the one before it is trained.
func (l *Log) Settled(ctx context.Context, to uint64) (uint64, error) {
	if to == 0 { // a scan to 0 goes to the end
		return 0, nil
	}
	updates, err := Updates(ctx, l)
	if err != nil {
		return 0, err
	}
	trained := Trained(updates)
	for r, err := range l.Scan(ctx, ScanOptions{From: l.compacted().to + 1, To: to, Types: TokenTypes}) {
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
	b := l.compacted()
	return b.to, b.events
}

func (l *Log) compacted() bare {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.bare
}

// rewrite is a record without tokens on its way into the log.
type rewrite struct {
	key   []byte
	value []byte
	code  byte
}

// compactSegment compacts what follows, up to event to or the segment's bounds.
func (l *Log) compactSegment(ctx context.Context, to uint64, report *Compaction) error {
	next := l.compacted()
	from := next.to + 1
	next.to = to
	var segment []rewrite
	part, size := *report, 0
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	err := l.scan(ctx, txn, ScanOptions{From: from, To: to, Types: TokenTypes}, func(item *badger.Item) (bool, error) {
		r, value, err := l.record(item)
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
		next.held += uint64(len(value))
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

// withoutTokens returns a record as it is without its tokens; nil if it cannot
// lose them. A payload that is damaged is not replaced.
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
		return nil, l.corrupt(r.Seq, "payload without tokens is not the one that the chain covers", nil)
	}
	r.Message.Encoding, r.Message.Data = events.EncodingNone, raw
	if len(raw) >= events.ZstdThreshold {
		r.Message.Encoding, r.Message.Data = events.EncodingZstd, compressor().EncodeAll(raw, nil)
	}
	compacted, _ := encodeRecord(Hash{}, r)
	copy(compacted[1:], r.Chain[:])
	return compacted, nil
}

// compressor takes more time for less space than the one events travel with.
var compressor = sync.OnceValue(func() *zstd.Encoder {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // its options are constants
	}
	return encoder
})

func (l *Log) commitSegment(segment []rewrite, after bare) error {
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
			// Now the last in the value log.
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
		l.failed = fmt.Errorf("compact log %s after event %d: %w", l.dir, l.bare.to, l.commitError(err))
		return l.failed
	}
	l.bare = after
	return nil
}
