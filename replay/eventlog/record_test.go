package eventlog

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codea1/events"
	"codea1/replay/internal/replaytest"
)

// recordsOf returns a message in every form of a record.
func recordsOf(t testing.TB, m events.Message) []Record {
	t.Helper()
	raw, err := m.Raw()
	if err != nil {
		t.Fatal(err)
	}
	without, tokens, ok := dropTokens(raw)
	if !ok {
		t.Fatalf("%s is not well-formed", m.Type)
	}
	bare := bareHash(tokens, hashOf(without))
	compacted := m
	compacted.Encoding, compacted.Data = events.EncodingNone, without
	return []Record{
		{Seq: 7, Message: m, PayloadHash: hashOf(raw)},
		{Seq: 7, Message: m, PayloadHash: hashOf(raw), bare: &bare},
		{Seq: 7, Message: compacted, PayloadHash: hashOf(raw), bare: &bare, Compacted: true, Tokens: tokens},
	}
}

// sameRecord compares records without the position of their bytes.
var sameRecord = cmp.Options{cmp.AllowUnexported(Record{}), cmpopts.IgnoreFields(Record{}, "chainEnd"), cmpopts.EquateEmpty()}

func TestRecordRoundTrip(t *testing.T) {
	p := replaytest.Posed(1, "What is f?")
	m := replaytest.Encode(t, p)
	caused := replaytest.Encode(t, replaytest.Sampled(p, strings.Repeat("return x\n", 500)))
	ancient := m
	ancient.Time = time.Date(1, 1, 1, 0, 0, 0, 999_999_999, time.UTC)
	ancient.TraceParent = ""
	for _, m := range []events.Message{m, caused, ancient} {
		for _, want := range recordsOf(t, m) {
			value, chain := encodeRecord(Hash{1}, &want)
			got, err := decodeRecord(7, value)
			if err != nil {
				t.Fatal(err)
			}
			want.Chain = chain
			if diff := cmp.Diff(want, got, sameRecord); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if chainOf(Hash{1}, 7, value[:got.chainEnd]) != chain {
				t.Error("the chain hash is not that of the chained part")
			}
			for i := range len(value) - len(want.Message.Data) {
				if _, err := decodeRecord(7, value[:i]); !errors.Is(err, errRecord) {
					t.Errorf("%d of %d bytes: %v", i, len(value), err)
				}
			}
		}
	}
}

// Every byte of a record is covered by its chain hash, or by a hash that the chain covers.
func TestChainCoversTheRecord(t *testing.T) {
	m := replaytest.Group(t, 1)[1]
	for _, r := range recordsOf(t, m) {
		value, chain := encodeRecord(Hash{1}, &r)
		decoded, err := decodeRecord(7, value)
		if err != nil {
			t.Fatal(err)
		}
		chained := value[:decoded.chainEnd]
		if chainOf(Hash{2}, 7, chained) == chain || chainOf(Hash{1}, 8, chained) == chain {
			t.Error("the chain does not cover the record before it, or the number")
		}
		for i := range value {
			if i >= 1 && i < chainedFrom || i >= len(chained) && r.Compacted && r.bare == nil {
				continue // the hash itself
			}
			value[i] ^= 1
			if intact(value, chain) {
				t.Fatalf("compacted %t: a change of byte %d does not show", r.Compacted, i)
			}
			value[i] ^= 1
		}
		if !intact(value, chain) {
			t.Fatalf("compacted %t: the record itself is not intact", r.Compacted)
		}
	}
}

// intact reports whether a record passes the checks of Verify.
func intact(value []byte, chain Hash) bool {
	r, err := decodeRecord(7, value)
	if err != nil || r.Chain != chain || chainOf(Hash{1}, 7, value[:r.chainEnd]) != chain {
		return false
	}
	raw, err := r.Message.Raw()
	return err == nil && r.checkHash(hashOf(raw)) == nil
}

func TestEveryTypeHasACode(t *testing.T) {
	codes := make(map[byte]events.Type)
	for _, typ := range events.Types() {
		code := typeCodes[typ]
		if code == 0 || codes[code] != "" {
			t.Errorf("%s has code %d, and so has %q", typ, code, codes[code])
		}
		codes[code] = typ
	}
}

func FuzzDecodeRecord(f *testing.F) {
	for slot := range 2 {
		for _, m := range replaytest.Group(f, slot) {
			for _, r := range recordsOf(f, m) {
				value, _ := encodeRecord(Hash{}, &r)
				f.Add(value)
			}
		}
	}
	f.Add(append(make([]byte, 97), 0xff, 0xff, 0xff, 0xff, 0x7f))
	f.Fuzz(func(t *testing.T, value []byte) {
		r, err := decodeRecord(1, value)
		if err != nil || r.Message.Validate() != nil {
			return
		}
		// A valid envelope is encoded to the same bytes, except for the length of numbers.
		again, chain := encodeRecord(Hash{}, &r)
		r2, err := decodeRecord(1, again)
		if err != nil {
			t.Fatal(err)
		}
		r.Chain = chain
		if diff := cmp.Diff(r, r2, sameRecord); diff != "" {
			t.Fatal(diff)
		}
		if !bytes.HasSuffix(value, r.Message.Data) {
			t.Fatal("data is not the rest of the value")
		}
	})
}

// dropTokens returns a payload that decodes without tokens, and the numbers of tokens.
func TestDropTokens(t *testing.T) {
	for _, m := range replaytest.Tell(t) {
		if !hasTokens(m.Type) {
			continue
		}
		e, err := m.Decode()
		if err != nil {
			t.Fatal(err)
		}
		var want []int
		forget := func(c *events.Completion) {
			want = append(want, len(c.Tokens))
			c.Tokens, c.LogProbs = events.Int32s{}, events.Float32s{}
		}
		switch p := e.Payload.(type) {
		case *events.CodeSampled:
			p.Prompt = events.Int32s{}
			for i := range p.Answers {
				forget(&p.Answers[i])
			}
		case *events.TestsSampled:
			for i := range p.Prompts {
				p.Prompts[i] = events.Int32s{}
			}
			for i := range p.Suites {
				for j := range p.Suites[i] {
					forget(&p.Suites[i][j])
				}
			}
		}
		compacted := recordsOf(t, m)[2]
		got, err := compacted.Decode()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e.Payload, got.Payload); diff != "" {
			t.Errorf("%s (-want +got):\n%s", m.Type, diff)
		}
		if diff := cmp.Diff(want, compacted.Tokens); diff != "" {
			t.Errorf("%s: numbers of tokens (-want +got):\n%s", m.Type, diff)
		}
	}
}

func FuzzDropTokens(f *testing.F) {
	for _, m := range append(replaytest.Group(f, 1), replaytest.Tell(f)...) {
		raw, err := m.Raw()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0xc6, 0, 0, 0, 1, 7})
	f.Fuzz(func(t *testing.T, raw []byte) {
		bare, tokens, ok := dropTokens(raw)
		if !ok {
			return
		}
		again, none, ok := dropTokens(bare)
		if !ok || !bytes.Equal(bare, again) || len(none) != len(tokens) || len(bare) > len(raw)+1 {
			t.Fatalf("%x loses its tokens twice: %x, then %x", raw, bare, again)
		}
	})
}

// A damaged payload is not reported as one that cannot be decoded.
func TestDecodeTellsDamageFromUnreadable(t *testing.T) {
	t.Parallel()
	messages := replaytest.Tell(t)
	broken := messages[0]
	broken.Encoding, broken.Data = events.EncodingNone, []byte{0xc1}
	for _, m := range []events.Message{messages[0], broken} {
		raw, err := m.Raw()
		if err != nil {
			t.Fatal(err)
		}
		r := Record{Seq: 1, Message: m, PayloadHash: hashOf(raw)}
		if _, err := r.Decode(); IsUnreadable(err) != (len(m.Data) == 1) {
			t.Errorf("as it was appended: %v", err)
		}
		for _, data := range [][]byte{{0xc1, 0xc1}, {}, m.Data[:len(m.Data)/2]} {
			r.Message.Data = data
			if _, err := r.Decode(); !errors.Is(err, errPayloadHash) {
				t.Errorf("with %d other bytes: %v", len(data), err)
			}
		}
	}
}
