package events

//go:generate go run codea1/events/internal/schemagen -root ..

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/vmihailenco/msgpack/v5"
)

// Message is an event as it travels and as it is kept: the envelope in the
// clear, the payload encoded.
type Message struct {
	Envelope
	Encoding string // content encoding of Data: EncodingNone or EncodingZstd
	Data     []byte // msgpack, possibly compressed
}

// Content encodings and type of a payload on the wire.
const (
	EncodingNone = ""
	EncodingZstd = "zstd"
	// ContentType is the media type of a payload.
	ContentType = "application/msgpack"
)

// One encoder and one decoder serve all goroutines: EncodeAll and DecodeAll
// keep no state between calls, and making them anew costs more than a payload
// does. A window of 64 KiB stays in a core's cache and takes a tenth less time
// than the default of 4 MiB, for the same size: what repeats further apart is
// rare. Frames carry no checksum: whoever keeps a message keeps a hash of its
// payload or a checksum of its own.
var (
	zstdEncoder = must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(64<<10), zstd.WithEncoderCRC(false)))
	zstdDecoder = must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(MaxPayloadBytes)))
)

// scratches are memory for one payload, to encode into and to decompress into.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

// Encode validates the event and returns its wire form. It fixes the event's
// hash.
func Encode(e *Event) (Message, error) { return encode(e, func(raw []byte) { e.hash = hashOf(raw) }) }

// encode lets take have the payload's msgpack bytes, which are gone when it
// returns.
func encode(e *Event, take func(raw []byte)) (Message, error) {
	if e.Payload == nil {
		return Message{}, invalid("payload", "is nil")
	}
	if t := e.Payload.EventType(); t != e.Type {
		return Message{}, invalid("type", "%q carries a payload of %q", e.Type, t)
	}
	if err := e.Validate(); err != nil {
		return Message{}, err
	}
	if err := e.Payload.Validate(); err != nil {
		return Message{}, fmt.Errorf("%s %s: %w", e.Type, e.Group, err)
	}
	if n, ok := e.Payload.(interface{ normalize() }); ok {
		n.normalize()
	}
	scratch := scratches.Get().(*[]byte)
	defer scratches.Put(scratch)
	raw, err := appendPayload((*scratch)[:0], e.Payload)
	if err != nil {
		return Message{}, fmt.Errorf("%s %s: encode: %w", e.Type, e.Group, err)
	}
	*scratch = raw // it may have grown
	if len(raw) > MaxPayloadBytes {
		return Message{}, fmt.Errorf("%s %s: %w: %d bytes, limit %d", e.Type, e.Group, ErrTooLarge, len(raw), MaxPayloadBytes)
	}
	take(raw)
	m := Message{Envelope: e.Envelope}
	if len(raw) >= ZstdThreshold {
		m.Encoding, m.Data = EncodingZstd, compress(raw)
		recents.keep(&m, raw)
	} else {
		m.Data = bytes.Clone(raw)
	}
	return m, nil
}

// EncodeOnce is Encode for an event that several will encode and nobody will
// change: the first call does the work, and all return the same message. The
// event's hash is left until somebody asks for it: an event that is only sent
// needs none.
func EncodeOnce(e *Event) (Message, error) {
	if e.encoded == nil {
		m, err := encode(e, func([]byte) {})
		if err != nil {
			return Message{}, err
		}
		e.encoded = &m
	}
	return *e.encoded, nil
}

// compress returns raw compressed, in no more memory than it takes: a message
// may wait for long, and how well raw compresses is not known before.
func compress(raw []byte) []byte {
	scratch := scratches.Get().(*[]byte)
	defer scratches.Put(scratch)
	most := len(raw) + len(raw)>>8 + 64 // what cannot be compressed grows a little
	*scratch = zstdEncoder.EncodeAll(raw, slices.Grow((*scratch)[:0], most))
	return bytes.Clone(*scratch)
}

// Raw returns the payload's msgpack bytes, decompressed and bounded.
func (m *Message) Raw() ([]byte, error) { return m.rawInto(nil) }

// WithRaw lends what Raw returns, and its hash as Event.Hash has it: use must
// neither change nor keep it. The error is that of Raw or of use.
func (m *Message) WithRaw(use func(raw []byte, hash func() string) error) error {
	if p := recents.of(m); p != nil {
		return use(p.raw, p.Hash)
	}
	scratch := scratches.Get().(*[]byte)
	defer scratches.Put(scratch)
	raw, err := m.rawInto((*scratch)[:0])
	if err != nil {
		return err
	}
	if m.Encoding != EncodingNone {
		*scratch = raw // it may have grown
	}
	return use(raw, func() string { return hashOf(raw) })
}

// rawInto is Raw with memory to decompress into, if it is enough.
func (m *Message) rawInto(scratch []byte) ([]byte, error) {
	if len(m.Data) > MaxPayloadBytes {
		return nil, fmt.Errorf("%s %s: %w: %d bytes, limit %d", m.Type, m.Group, ErrTooLarge, len(m.Data), MaxPayloadBytes)
	}
	switch m.Encoding {
	case EncodingNone:
		return m.Data, nil
	case EncodingZstd:
		raw, err := zstdDecoder.DecodeAll(m.Data, scratch)
		if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
			return nil, fmt.Errorf("%s %s: %w: decompresses to more than %d bytes", m.Type, m.Group, ErrTooLarge, MaxPayloadBytes)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w: zstd: %w", m.Type, m.Group, ErrMalformed, err)
		}
		return raw, nil
	}
	return nil, fmt.Errorf("%s %s: %w: unknown content encoding %q", m.Type, m.Group, ErrMalformed, clip(m.Encoding))
}

// Decode returns the event a message carries, in the current schema version.
// Bytes that are not one whole well-formed payload give ErrMalformed, whatever
// they are: nothing is allocated on their word.
func (m *Message) Decode() (*Event, error) { return m.event(false) }

// DecodeTexts is Decode for those who look at no token ids and log-probs: where
// that saves work they are left out, with the hash of the whole payload.
func (m *Message) DecodeTexts() (*Event, error) { return m.event(true) }

func (m *Message) event(textsOnly bool) (*Event, error) {
	e := &Event{Envelope: m.Envelope}
	var err error
	if e.Payload, err = m.decode(textsOnly, func(hash func() string) { e.hash = hash() }); err != nil {
		return nil, err
	}
	e.SchemaVersion = registry[m.Type].version
	return e, nil
}

// Again is Decode for an event that is to be published again: EncodeOnce returns
// the message as it is, in the schema version in which it was written.
func (m *Message) Again() (*Event, error) {
	e, err := m.Decode()
	if err != nil {
		return nil, err
	}
	kept := *m
	e.encoded = &kept
	return e, nil
}

// Payload is what Decode returns, without envelope and hash: for those who read
// an event and cause none.
func (m *Message) Payload() (Payload, error) { return m.decode(false, func(func() string) {}) }

// decode lets take have the hash of the payload as it is in the message.
func (m *Message) decode(textsOnly bool, take func(hash func() string)) (Payload, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	entry := registry[m.Type]
	if m.SchemaVersion > entry.version {
		return nil, fmt.Errorf("%s %s: %w: version %d, this build knows %d", m.Type, m.Group, ErrNewerSchema, m.SchemaVersion, entry.version)
	}
	var p Payload
	err := m.WithRaw(func(raw []byte, hash func() string) error { // of which p keeps nothing
		var quick bool
		if p, quick = readPayload(m, raw, textsOnly); !quick {
			var err error
			if p, err = m.decodeAnyForm(raw); err != nil {
				return err
			}
		}
		if err := p.Validate(); err != nil {
			return fmt.Errorf("%s %s: %w", m.Type, m.Group, err)
		}
		take(hash)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// readPayload reads what this build writes; false for all else.
func readPayload(m *Message, raw []byte, textsOnly bool) (Payload, bool) {
	entry := registry[m.Type]
	p := entry.make()
	w, ok := p.(wired)
	if !ok || m.SchemaVersion != entry.version {
		return nil, false
	}
	r := reader{raw: raw, textsOnly: textsOnly}
	w.read(&r)
	return p, r.done()
}

// decodeAnyForm reads every well-formed payload, of this version or an older.
func (m *Message) decodeAnyForm(raw []byte) (Payload, error) {
	if err := checkShape(raw); err != nil {
		return nil, fmt.Errorf("%s %s: %w", m.Type, m.Group, err)
	}
	entry := registry[m.Type]
	raw, err := upcast(m.Type, m.SchemaVersion, entry.version, raw)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", m.Type, m.Group, err)
	}
	p := entry.make()
	if err := unmarshal(raw, p); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %w", m.Type, m.Group, ErrMalformed, err)
	}
	return p, nil
}

// DecodeAny returns a message's payload as maps, lists and scalars, without
// knowing its type: for taps and for checks against the JSON Schemas.
func (m *Message) DecodeAny() (map[string]any, error) {
	raw, err := m.Raw()
	if err != nil {
		return nil, err
	}
	if err := checkShape(raw); err != nil {
		return nil, fmt.Errorf("%s %s: %w", m.Type, m.Group, err)
	}
	var v map[string]any
	if err := unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %w", m.Type, m.Group, ErrMalformed, err)
	}
	return v, nil
}

// appendPayload appends a payload's msgpack bytes to b.
func appendPayload(b []byte, p Payload) ([]byte, error) {
	if p, ok := p.(wired); ok {
		w := writer{b}
		p.write(&w)
		return w.b, nil
	}
	raw, err := marshal(p)
	return append(b, raw...), err
}

// marshal is what all encoding has to agree with.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := msgpack.GetEncoder()
	defer msgpack.PutEncoder(enc)
	enc.Reset(&buf)
	enc.SetSortMapKeys(true)
	enc.UseCompactInts(true)
	err := enc.Encode(v)
	return buf.Bytes(), err
}

func unmarshal(raw []byte, v any) error {
	dec := msgpack.GetDecoder()
	defer msgpack.PutDecoder(dec)
	r := bytes.NewReader(raw)
	dec.Reset(r)
	if err := dec.Decode(v); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return nil
}

func hashOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
