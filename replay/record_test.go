package replay

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"codea1/events"
	"github.com/google/go-cmp/cmp"
)

func TestRecordRoundTrip(t *testing.T) {
	p := posed(1, "What is f?")
	m := encode(t, p)
	caused := encode(t, sampled(p, strings.Repeat("return x\n", 500)))
	ancient := m
	ancient.Time = time.Date(1, 1, 1, 0, 0, 0, 999_999_999, time.UTC)
	ancient.TraceParent = ""
	for _, m := range []events.Message{m, caused, ancient} {
		value, chain := encodeRecord(Hash{1}, 7, &m, Hash{2})
		r, err := decodeRecord(7, value)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Record{Seq: 7, Message: m, PayloadHash: Hash{2}, Chain: chain}, r); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for i := range len(value) - len(m.Data) {
			if _, err := decodeRecord(7, value[:i]); !errors.Is(err, errRecord) {
				t.Errorf("%d of %d bytes: %v", i, len(value), err)
			}
		}
	}
}

// Everything a record says is in its chain hash.
func TestChainCoversTheRecord(t *testing.T) {
	m := group(t, 1)[1]
	value, chain := encodeRecord(Hash{1}, 7, &m, Hash{2})
	if chainOf(Hash{2}, 7, value) == chain || chainOf(Hash{1}, 8, value) == chain {
		t.Error("the chain does not cover the record before it, or the number")
	}
	for i := range value {
		if i >= 1 && i < chainedFrom {
			continue // the hash itself
		}
		value[i] ^= 1
		if chainOf(Hash{1}, 7, value) == chain {
			t.Fatalf("the chain does not cover byte %d", i)
		}
		value[i] ^= 1
	}
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
		for _, m := range group(f, slot) {
			value, _ := encodeRecord(Hash{}, 1, &m, Hash{})
			f.Add(value)
		}
	}
	f.Add(append(make([]byte, 97), 0xff, 0xff, 0xff, 0xff, 0x7f))
	f.Fuzz(func(t *testing.T, value []byte) {
		r, err := decodeRecord(1, value)
		if err != nil || r.Message.Validate() != nil {
			return
		}
		// What decodes into a valid envelope is what encodes to it, up to
		// the spelling of numbers.
		again, _ := encodeRecord(Hash{}, 1, &r.Message, r.PayloadHash)
		r2, err := decodeRecord(1, again)
		if err != nil {
			t.Fatal(err)
		}
		r2.Chain = r.Chain
		if diff := cmp.Diff(r, r2); diff != "" {
			t.Fatal(diff)
		}
		if !bytes.HasSuffix(value, r.Message.Data) {
			t.Fatal("data is not the rest of the value")
		}
	})
}
