package events

//go:generate go run codea1/events/internal/schemagen -root ..

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"codea1/events/internal/shape"
)

// Message is an encoded event: the envelope in the clear, the payload as bytes.
// A bus carries messages, and the log stores them.
type Message struct {
	Envelope
	Encoding string // content encoding of Data: EncodingNone or EncodingZstd
	Data     []byte // msgpack, possibly compressed

	// Beside is read by Bus.Publish only: so many stored events under the ID came
	// out of turn (Course), and this one is stored beside them.
	Beside int
}

// Content encodings and type of a payload on the wire.
const (
	EncodingNone = ""
	EncodingZstd = "zstd"
	// ContentType is the media type of a payload.
	ContentType = "application/msgpack"
)

// All goroutines share one encoder and one decoder: EncodeAll and DecodeAll keep
// no state between calls. A window of 64 KiB fits into a core's cache; it takes
// a tenth less time than the default of 4 MiB and gives the same size. Frames
// carry no checksum, because every store of messages has a hash or a checksum
// of its own.
var (
	zstdEncoder = must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(64<<10), zstd.WithEncoderCRC(false)))
	zstdDecoder = must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(MaxPayloadBytes)))
)

// scratches are buffers to compress into and to decompress into.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

// Encode validates the event, encodes it and sets its hash.
func Encode(e *Event) (Message, error) { return encode(e, func(raw []byte) { e.hash = hashOf(raw) }) }

// encode calls take with the payload's msgpack bytes, which are valid only
// during the call.
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
	m := Message{Envelope: e.Envelope}
	err := withMsgpack(e.Payload, func(raw []byte) error {
		if len(raw) > MaxPayloadBytes {
			return fmt.Errorf("%w: %d bytes, limit %d", ErrTooLarge, len(raw), MaxPayloadBytes)
		}
		take(raw)
		if len(raw) >= ZstdThreshold {
			m.Encoding, m.Data = EncodingZstd, compress(raw)
			recents.keep(&m, raw)
		} else {
			m.Data = bytes.Clone(raw)
		}
		return nil
	})
	if err != nil {
		return Message{}, fmt.Errorf("%s %s: %w", e.Type, e.Group, err)
	}
	return m, nil
}

// EncodeOnce is Encode for an event that is encoded several times and never
// changed. The first call encodes, and every call returns the same message. It
// does not set the hash; Event.Hash computes it on demand.
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

// compress returns raw compressed, in a slice of exactly that size: a message
// may stay in memory for long.
func compress(raw []byte) []byte {
	scratch := scratches.Get().(*[]byte)
	defer scratches.Put(scratch)
	most := len(raw) + len(raw)>>8 + 64 // incompressible bytes grow a little
	*scratch = zstdEncoder.EncodeAll(raw, slices.Grow((*scratch)[:0], most))
	return bytes.Clone(*scratch)
}

// Raw returns the payload's msgpack bytes, decompressed and bounded.
func (m *Message) Raw() ([]byte, error) { return m.rawInto(nil) }

// WithRaw calls use with the bytes that Raw returns and with a function that
// returns their hash. use must neither change nor keep the bytes. The error is
// that of Raw or of use.
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

// rawInto is Raw. It decompresses into scratch where that is large enough.
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

// Decode returns the event of a message, in the current schema version. Bytes
// that are not one well-formed payload give ErrMalformed. A length in the bytes
// never makes it allocate more than the bytes can hold.
func (m *Message) Decode() (*Event, error) { return m.event(false) }

// DecodeTexts is Decode without token ids and log-probs. The hash is that of the
// whole payload.
func (m *Message) DecodeTexts() (*Event, error) { return m.event(true) }

func (m *Message) event(textsOnly bool) (*Event, error) {
	e := &Event{Envelope: m.Envelope}
	var err error
	take := func(_ []byte, hash func() string) error { e.hash = hash(); return nil }
	if e.Payload, err = m.decode(textsOnly, take); err != nil {
		return nil, err
	}
	e.SchemaVersion = registry[m.Type].version
	return e, nil
}

// Again is Decode for an event that is published again: EncodeOnce returns the
// message unchanged, in the schema version in which it was written.
func (m *Message) Again() (*Event, error) {
	e, err := m.Decode()
	if err != nil {
		return nil, err
	}
	kept := *m
	e.encoded = &kept
	return e, nil
}

// Payload is Decode without envelope and hash: for readers that cause no events.
func (m *Message) Payload() (Payload, error) {
	return m.decode(false, func([]byte, func() string) error { return nil })
}

// decode calls take with the payload as it is in the message, as WithRaw does.
func (m *Message) decode(textsOnly bool, take func(raw []byte, hash func() string) error) (Payload, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	entry := registry[m.Type]
	if m.SchemaVersion > entry.version {
		return nil, fmt.Errorf("%s %s: %w: version %d, this build knows %d", m.Type, m.Group, ErrNewerSchema, m.SchemaVersion, entry.version)
	}
	var p Payload
	err := m.WithRaw(func(raw []byte, hash func() string) error { // p keeps no part of raw
		var err error
		if p, err = m.decodeRaw(raw, textsOnly); err == nil {
			err = p.Validate()
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", m.Type, m.Group, err)
		}
		return take(raw, hash)
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// decodeRaw reads a payload of this version or an older one.
func (m *Message) decodeRaw(raw []byte, textsOnly bool) (Payload, error) {
	if err := CheckShape(raw); err != nil {
		return nil, err
	}
	entry := registry[m.Type]
	raw, err := upcast(m.Type, m.SchemaVersion, entry.version, raw)
	if err != nil {
		return nil, err
	}
	p := entry.make()
	if err := unmarshal(raw, p, textsOnly); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return p, nil
}

// DecodeAny returns a message's payload as maps, lists and scalars: for taps and
// for checks against the JSON Schemas.
func (m *Message) DecodeAny() (map[string]any, error) {
	raw, err := m.Raw()
	if err != nil {
		return nil, err
	}
	if err := CheckShape(raw); err != nil {
		return nil, fmt.Errorf("%s %s: %w", m.Type, m.Group, err)
	}
	var v map[string]any
	if err := unmarshal(raw, &v, false); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %w", m.Type, m.Group, ErrMalformed, err)
	}
	return v, nil
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

// CheckShape walks msgpack bytes without decoding them. It accepts exactly one map
// within MaxDepth and MaxItems in which every length fits into the remaining
// bytes. msgpack's decoder trusts the lengths that it reads: five bytes can make
// it allocate hundreds of megabytes.
func CheckShape(raw []byte) error {
	if err := shape.Check(raw, MaxDepth, MaxItems); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}
