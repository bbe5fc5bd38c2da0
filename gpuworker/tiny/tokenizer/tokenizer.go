package tokenizer

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// The special tokens of Qwen2's chat format.
const (
	EndOfText = "<|endoftext|>"
	TurnStart = "<|im_start|>"
	TurnEnd   = "<|im_end|>"
)

// ErrUnsupported is the error of a tokenizer.json that is valid but is not a Qwen2
// byte-level BPE.
var ErrUnsupported = errors.New("unsupported tokenizer")

// MaxVocabulary limits the number of tokens of a tokenizer.
const MaxVocabulary = 1 << 20

// Tokenizer maps text to token ids and back. It is immutable and safe for
// concurrent use.
type Tokenizer struct {
	tokens  []string         // by id: the bytes of a token; "" for ids without one
	byteIDs [256]int32       // the token of each single byte
	merges  map[pair]merge   // of two adjacent tokens
	order   []pair           // merges by rank
	added   map[string]int32 // tokens beside BPE, such as TurnEnd
	special map[int32]bool   // added tokens that Decode leaves out
}

// Size returns one more than the highest token id.
func (t *Tokenizer) Size() int { return len(t.tokens) }

// ID returns the id of an added token such as TurnEnd.
func (t *Tokenizer) ID(token string) (int32, bool) {
	id, ok := t.added[token]
	return id, ok
}

// Encode returns the ids of text. Text never becomes an added token:
// "<|im_end|>" is ten characters.
func (t *Tokenizer) Encode(text string) []int32 {
	return t.Append(nil, text)
}

// Append appends the ids of Encode(text) to ids.
func (t *Tokenizer) Append(ids []int32, text string) []int32 {
	text = norm.NFC.String(text)
	for len(text) > 0 {
		n := nextPiece(text)
		ids = t.appendMerged(ids, text[:n])
		text = text[n:]
	}
	return ids
}

// Decode returns the bytes of ids without the special tokens. The result can be
// invalid UTF-8, because a token can end inside a rune. An id without a token
// decodes to nothing: a model's vocabulary can be larger than its tokenizer's.
func (t *Tokenizer) Decode(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		if id >= 0 && int(id) < len(t.tokens) && !t.special[id] {
			b.WriteString(t.tokens[id])
		}
	}
	return b.String()
}

// addedToken is one entry of added_tokens.
type addedToken struct {
	id      int32
	content string
	special bool
}

// build makes a tokenizer from the ids of tokens, merges by rank and added tokens,
// and checks that they are consistent.
func build(vocabulary map[string]int32, order [][2]string, added []addedToken) (*Tokenizer, error) {
	t := &Tokenizer{
		merges:  make(map[pair]merge, len(order)),
		added:   make(map[string]int32, len(added)),
		special: make(map[int32]bool, len(added)),
	}
	size := 0
	for _, id := range vocabulary {
		size = max(size, int(id)+1)
	}
	for _, a := range added {
		size = max(size, int(a.id)+1)
	}
	if size > MaxVocabulary {
		return nil, fmt.Errorf("%w: token id %d, at most %d", ErrUnsupported, size-1, MaxVocabulary-1)
	}
	t.tokens = make([]string, size)
	for token, id := range vocabulary {
		if id < 0 || t.tokens[id] != "" || token == "" {
			return nil, fmt.Errorf("token %q has id %d, which is invalid or used twice", token, id)
		}
		t.tokens[id] = token
	}
	for b := range 256 {
		id, ok := vocabulary[string([]byte{byte(b)})]
		if !ok {
			return nil, fmt.Errorf("%w: no token for the byte 0x%02x", ErrUnsupported, b)
		}
		t.byteIDs[b] = id
	}
	for rank, m := range order {
		left, okLeft := vocabulary[m[0]]
		right, okRight := vocabulary[m[1]]
		into, okInto := vocabulary[m[0]+m[1]]
		if !okLeft || !okRight || !okInto {
			return nil, fmt.Errorf("merge %d of %q and %q names a token that is not in the vocabulary", rank, m[0], m[1])
		}
		p := pair{left, right}
		if _, ok := t.merges[p]; ok {
			return nil, fmt.Errorf("merge %d of %q and %q occurs twice", rank, m[0], m[1])
		}
		t.merges[p] = merge{int32(rank), into}
		t.order = append(t.order, p)
	}
	for _, a := range added {
		if a.content == "" || a.id < 0 || t.tokens[a.id] != "" && t.tokens[a.id] != a.content {
			return nil, fmt.Errorf("added token %q has id %d, which is invalid or used twice", a.content, a.id)
		}
		t.tokens[a.id] = a.content
		t.added[a.content] = a.id
		t.special[a.id] = a.special
	}
	return t, nil
}
