package eventlog

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"codea1/events"
)

// Token ids and log-probs are most of a log, and only training needs them. They
// are the only packed values in the payloads of TokenTypes, so the payload
// without them follows from the bytes alone, for every schema version.

// TokenTypes are the events that carry token ids and log-probs.
var TokenTypes = []events.Type{events.TypeCodeSampled, events.TypeTestsSampled}

func hasTokens(t events.Type) bool { return slices.Contains(TokenTypes, t) }

// tokensField is the field of a completion with its token ids, four bytes each.
const tokensField = "tokens"

// emptyBin is a msgpack bin of no bytes.
var emptyBin = []byte{0xc4, 0}

// findTokens returns the bins of a msgpack payload and the number of tokens of
// each completion, in order. ok is false for bytes that are not one well-formed
// value; they are never compacted.
func findTokens(raw []byte) (bins []span, tokens []int, ok bool) {
	w := tokenWalk{raw: raw}
	if !w.value(0, false) || w.at != len(raw) {
		return nil, nil, false
	}
	return w.bins, w.tokens, true
}

// dropTokens returns a payload with every bin made empty, and the number of
// tokens of each completion.
func dropTokens(raw []byte) (bare []byte, tokens []int, ok bool) {
	bins, tokens, ok := findTokens(raw)
	if !ok {
		return nil, nil, false
	}
	bare = make([]byte, 0, len(raw))
	at := 0
	for _, bin := range bins {
		bare = append(append(bare, raw[at:bin.start]...), emptyBin...)
		at = bin.end
	}
	return append(bare, raw[at:]...), tokens, true
}

// hashWithoutTokens returns the bareHash of a whole payload.
func hashWithoutTokens(raw []byte) (bare Hash, ok bool) {
	bins, tokens, ok := findTokens(raw)
	if !ok {
		return Hash{}, false
	}
	h := sha256.New()
	at := 0
	for _, bin := range bins {
		h.Write(raw[at:bin.start])
		h.Write(emptyBin)
		at = bin.end
	}
	h.Write(raw[at:])
	h.Sum(bare[:0])
	return bareHash(tokens, bare), true
}

// bareHash returns the hash that a record has of its payload without tokens: of
// the encoded numbers of tokens, and of that payload's hash.
func bareHash(tokens []int, bare Hash) Hash {
	return hashOf(append(appendTokens(nil, tokens), bare[:]...))
}

func appendTokens(b []byte, tokens []int) []byte {
	b = binary.AppendUvarint(b, uint64(len(tokens)))
	for _, n := range tokens {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

func (f *fields) tokens() []int {
	n := f.number()
	if n > uint64(len(f.rest)) { // a byte each at least
		f.failed, f.rest = true, nil
		return nil
	}
	tokens := make([]int, n)
	for i := range tokens {
		tokens[i] = int(f.number())
	}
	return tokens
}

// span is the position of a bin, with its head.
type span struct{ start, end int }

// tokenWalk steps through msgpack without decoding it.
type tokenWalk struct {
	raw    []byte
	at     int // next byte
	bins   []span
	tokens []int
}

// length reads a big-endian length of width bytes; false if it is cut off or more
// than the rest.
func (w *tokenWalk) length(width int) (int, bool) {
	if width > len(w.raw)-w.at {
		return 0, false
	}
	n := 0
	for _, b := range w.raw[w.at : w.at+width] {
		n = n<<8 | int(b)
	}
	w.at += width
	return n, n <= len(w.raw)-w.at
}

func (w *tokenWalk) skip(n int) bool {
	w.at += n
	return w.at <= len(w.raw)
}

// value steps over one value; isTokens says that it is the value of tokensField.
func (w *tokenWalk) value(depth int, isTokens bool) bool {
	if depth > events.MaxDepth || w.at >= len(w.raw) {
		return false
	}
	start := w.at
	c := w.raw[w.at]
	w.at++
	switch {
	case c <= 0x7f, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3: // small numbers, nil, booleans
		return true
	case c <= 0x8f:
		return w.fields(depth, int(c&0x0f))
	case c <= 0x9f:
		return w.items(depth, int(c&0x0f))
	case c <= 0xbf:
		return w.skip(int(c & 0x1f))
	case c == 0xca, c == 0xcb: // floats
		return w.skip(4 << (c - 0xca))
	case c >= 0xcc && c <= 0xcf:
		return w.skip(1 << (c - 0xcc))
	case c >= 0xd0 && c <= 0xd3:
		return w.skip(1 << (c - 0xd0))
	}
	var n int
	ok := false
	switch {
	case c >= 0xc4 && c <= 0xc6:
		if n, ok = w.length(1 << (c - 0xc4)); ok {
			w.bin(start, n, isTokens)
		}
	case c >= 0xd9 && c <= 0xdb:
		n, ok = w.length(1 << (c - 0xd9))
		ok = ok && w.skip(n)
	case c == 0xdc, c == 0xdd:
		n, ok = w.length(2 << (c - 0xdc))
		ok = ok && w.items(depth, n)
	case c == 0xde, c == 0xdf:
		n, ok = w.length(2 << (c - 0xde))
		ok = ok && w.fields(depth, n)
	}
	return ok // extensions are not used
}

// bin adds the bin that began at start; its n bytes are next.
func (w *tokenWalk) bin(start, n int, isTokens bool) {
	if isTokens {
		w.tokens = append(w.tokens, n/4)
	}
	w.at += n
	w.bins = append(w.bins, span{start, w.at})
}

func (w *tokenWalk) items(depth, n int) bool {
	for range n {
		if !w.value(depth+1, false) {
			return false
		}
	}
	return true
}

func (w *tokenWalk) fields(depth, n int) bool {
	for range n {
		start := w.at
		if !w.value(depth+1, false) {
			return false
		}
		// The name of a field is a short string: one byte for its length, then the text.
		isTokens := string(w.raw[start+1:w.at]) == tokensField
		if !w.value(depth+1, isTokens) {
			return false
		}
	}
	return true
}
