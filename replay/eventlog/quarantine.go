package eventlog

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/dgraph-io/badger/v4"

	"codea1/events"
)

// The log keeps the messages that are no events of the run apart from its events,
// within these bounds. It only counts the messages beyond them, so that nobody can
// fill the disk.
const (
	maxQuarantined      = 1000
	maxQuarantinedBytes = 16 << 20 // of all stored forms
	maxQuarantinedData  = 64 << 10 // of one payload
)

// Quarantined is a message on the bus of a run that is no event of it. Its texts
// come from the publisher unchanged.
type Quarantined struct {
	Number   uint64          `json:"number"`   // from 1, in the order of the bus
	Position events.Position `json:"position"` // on the bus, after the message
	After    uint64          `json:"after"`    // the last event in the log before it
	Reason   string          `json:"reason"`
	Type     events.Type     `json:"type,omitempty"` // with ID, group and source: empty if the headers are malformed
	ID       string          `json:"id,omitempty"`
	Group    string          `json:"group,omitempty"`
	Source   string          `json:"source,omitempty"`
	Schema   int             `json:"schema_version,omitempty"`
	Place    string          `json:"place,omitempty"`  // of a message with malformed headers
	Header   string          `json:"header,omitempty"` // likewise: the headers, a line each
	Encoding string          `json:"encoding,omitempty"`
	Bytes    int             `json:"bytes"`  // of the payload
	SHA256   Hash            `json:"sha256"` // of the payload
	Data     []byte          `json:"data"`   // the payload, up to 64 KiB
}

// Quarantine counts the messages on the bus of a run that are no events of it.
type Quarantine struct {
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"` // of their payloads
	Kept     uint64 `json:"kept"`  // messages that Log.Quarantined yields
	KeptSize uint64 `json:"kept_bytes"`
}

// maxReason bounds the reason of a quarantine.
const maxReason = 1 << 10

// quarantine makes the candidate a message that is no event.
func (c *candidate) quarantine(err error) {
	m, malformed := &c.in.Message, c.in.Malformed
	q := &Quarantined{
		Position: c.in.Position, Type: m.Type, ID: m.ID, Group: m.Group, Source: m.Source, Schema: m.SchemaVersion, Encoding: m.Encoding,
	}
	data := m.Data
	if malformed != nil {
		data, err = malformed.Data, malformed.Err
		q.Place, q.Header = malformed.Place, malformed.Header
	}
	q.Reason = err.Error()
	q.Reason = q.Reason[:min(len(q.Reason), maxReason)]
	q.Bytes, q.SHA256, q.Data = len(data), hashOf(data), data[:min(len(data), maxQuarantinedData)]
	c.outcome, c.quarantined, c.value = quarantined, q, nil
}

// number gives a quarantined message its number, and its stored form if there is
// room.
func (q *Quarantine) number(c *candidate, after uint64) error {
	q.Messages++
	q.Bytes += uint64(c.quarantined.Bytes)
	c.quarantined.Number, c.quarantined.After = q.Messages, after
	if q.Kept < maxQuarantined {
		stored, err := json.Marshal(c.quarantined)
		if err != nil {
			return err
		}
		if size := uint64(len(stored)); q.KeptSize+size <= maxQuarantinedBytes {
			q.Kept++
			q.KeptSize += size
			c.value = stored
		}
	}
	c.counted = *q
	return nil
}

// Quarantine returns how many messages of the run's bus are no events.
func (l *Log) Quarantine() Quarantine {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.quarantine
}

// Quarantined yields the messages that are no events, in the order of the bus.
func (l *Log) Quarantined(ctx context.Context) iter.Seq2[Quarantined, error] {
	return func(yield func(Quarantined, error) bool) {
		v, closeView, err := l.view()
		if err != nil {
			yield(Quarantined{}, err)
			return
		}
		defer closeView()
		it := v.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceQuarantine}})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			q, err := v.quarantined(it.Item())
			if err == nil {
				err = ctx.Err()
			}
			if !yield(q, err) || err != nil {
				return
			}
		}
	}
}

func (v view) quarantined(item *badger.Item) (q Quarantined, err error) {
	err = item.Value(func(value []byte) error { return json.Unmarshal(value, &q) })
	if err != nil {
		return Quarantined{}, v.log.corrupt(0, "a quarantined message cannot be read", err)
	}
	return q, nil
}

// quarantine reads the counts.
func (v view) quarantine() (q Quarantine, err error) {
	raw, err := v.get(keyQuarantine)
	if err == nil && raw != nil {
		err = json.Unmarshal(raw, &q)
	}
	if err != nil {
		return q, v.log.corrupt(0, "the counts of the quarantine cannot be read", err)
	}
	return q, nil
}

// checkQuarantine compares the counts with the messages that are kept.
func (c *verifier) checkQuarantine(ctx context.Context) (err error) {
	if c.report.Quarantine, err = c.quarantine(); err != nil {
		return err
	}
	it := c.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceQuarantine}})
	defer it.Close()
	kept, size := uint64(0), uint64(0)
	for it.Rewind(); it.Valid(); it.Next() {
		q, err := c.quarantined(it.Item())
		if err == nil {
			err = it.Item().Value(func(value []byte) error { size += uint64(len(value)); return ctx.Err() })
		}
		if err != nil {
			return err
		}
		if q.Bytes == len(q.Data) && hashOf(q.Data) != q.SHA256 {
			return c.log.corrupt(0, fmt.Sprintf("the payload of quarantined message %d is not the one that was read", q.Number), nil)
		}
		kept++
	}
	if q := &c.report.Quarantine; kept != q.Kept || size != q.KeptSize {
		return c.log.corrupt(0, fmt.Sprintf("%d quarantined messages of %d bytes are kept, the counts say %d of %d", kept, size, q.Kept, q.KeptSize), nil)
	}
	return nil
}

func quarantineKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{spaceQuarantine}, number)
}

// CopyQuarantine copies the quarantined messages of source to target.
func CopyQuarantine(ctx context.Context, source, target *Log) error {
	v, closeView, err := source.view()
	if err != nil {
		return err
	}
	defer closeView()
	counts, err := v.quarantine()
	if err != nil || counts == (Quarantine{}) {
		return err
	}
	batch := target.db.NewWriteBatch()
	defer batch.Cancel()
	it := v.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceQuarantine}})
	defer it.Close()
	for it.Rewind(); it.Valid() && ctx.Err() == nil; it.Next() {
		value, err := it.Item().ValueCopy(nil)
		if err == nil {
			err = batch.Set(it.Item().KeyCopy(nil), value)
		}
		if err != nil {
			return err
		}
	}
	value, err := json.Marshal(counts)
	if err == nil {
		err = batch.Set(keyQuarantine, value)
	}
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	if err := batch.Flush(); err != nil {
		return err
	}
	target.mu.Lock()
	defer target.mu.Unlock()
	target.quarantine = counts
	return nil
}
