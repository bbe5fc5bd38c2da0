package events

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"
)

// agrees checks that a payload is written as its struct tags say, and read back.
func agrees(t rapid.TB, p Payload) {
	t.Helper()
	want, err := marshalByTags(p)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := marshal(p)
	if err != nil || !bytes.Equal(raw, want) {
		t.Fatalf("%s, %v:\n%q\nby its tags:\n%q", p.EventType(), err, raw, want)
	}
	back := NewPayload(p.EventType())
	if err := unmarshal(raw, back, false); err != nil {
		t.Fatalf("%s: read: %v: %q", p.EventType(), err, raw)
	}
	if again, err := marshal(back); err != nil || !bytes.Equal(again, raw) {
		t.Fatalf("%s: written again as other bytes, %v:\n%q\nwas:\n%q", p.EventType(), err, again, raw)
	}
}

// messageOf puts msgpack bytes into a valid envelope.
func messageOf(t Type, raw []byte) Message {
	m := Message{Envelope: sampleEvent(NewPayload(t)).Envelope, Data: raw}
	m.SchemaVersion = CurrentVersion(t)
	return m
}

func anyPayload[T any, P interface {
	*T
	Payload
}](t *testing.T) {
	var p P
	t.Run(string(P(new(T)).EventType()), func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			v := rapid.Make[T]().Draw(t, "payload")
			p = &v
			if n, ok := any(p).(interface{ normalize() }); ok {
				n.normalize()
			}
			agrees(t, p)
		})
	})
}

func TestFieldsAreThoseOfTheTags(t *testing.T) {
	anyPayload[ProblemPosed](t)
	anyPayload[CodeSampled](t)
	anyPayload[TestsSampled](t)
	anyPayload[CodeExecuted](t)
	anyPayload[GroupRewarded](t)
	for _, p := range samples() {
		if _, ok := p.(fielder); ok {
			agrees(t, p)
		}
	}
}

// Every width that a number, a text, a bin and a list can have.
func TestWidths(t *testing.T) {
	p := GroupRewarded{Code: []AnswerReward{}, Test: [][]SuiteReward{}}
	for shift := range 64 {
		for _, near := range []int{-1, 0, 1} {
			v := 1<<shift + near
			p.Deltas = append(p.Deltas, BookDelta{Change: v}, BookDelta{Change: -v})
		}
	}
	agrees(t, &p)
	for _, n := range []int{0, 1, 15, 16, 31, 32, 63, 64, 255, 256, math.MaxUint16, math.MaxUint16 + 1} {
		s := strings.Repeat("x", n)
		agrees(t, &ProblemPosed{Plan: Plan{Seed: uint64(n)}, Problem: Problem{Question: s}, Given: slices.Repeat([]string{"y"}, n)})
		agrees(t, &CodeSampled{Prompt: make(Int32s, n), Answers: []Completion{{Text: s, Tokens: Int32s{int32(n)}, LogProbs: make(Float32s, n)}}})
	}
}

// A payload of another program, with its fields in another order and with more of
// them, is read.
func TestOtherFormsAreRead(t *testing.T) {
	for _, p := range samples() {
		m, err := Encode(sampleEvent(p))
		if err != nil {
			t.Fatal(err)
		}
		generic, err := m.DecodeAny()
		if err != nil {
			t.Fatal(err)
		}
		generic["added_later"] = true
		other, err := marshal(generic) // sorted by name
		if err != nil {
			t.Fatal(err)
		}
		m = messageOf(p.EventType(), other)
		e, err := m.Decode()
		if err != nil {
			t.Fatalf("%s: %v", m.Type, err)
		}
		if diff := cmp.Diff(p, e.Payload, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-sent +received):\n%s", m.Type, diff)
		}
	}
}

// Columns of different lengths are malformed.
func TestColumnsMatch(t *testing.T) {
	for _, p := range samples() {
		for _, column := range []string{"response_tokens", "response_logprobs"} {
			m, err := Encode(sampleEvent(p))
			if err != nil {
				t.Fatal(err)
			}
			generic, err := m.DecodeAny()
			if err != nil {
				t.Fatal(err)
			}
			all, ok := generic[column].([]any)
			if !ok {
				continue
			}
			generic[column] = all[1:]
			if m.Data, err = marshal(generic); err != nil {
				t.Fatal(err)
			}
			m.Encoding = EncodingNone
			if _, err := m.Decode(); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s with one of %s missing: %v", m.Type, column, err)
			}
		}
	}
}

// Packed values that are no bin, or whose bytes are not a multiple of four, are
// malformed.
func TestPackedThatDoesNotFit(t *testing.T) {
	for _, p := range samples() {
		for _, broken := range []any{[]byte{1, 2, 3}, "no bin"} {
			m, err := Encode(sampleEvent(p))
			if err != nil {
				t.Fatal(err)
			}
			generic, err := m.DecodeAny()
			if err != nil {
				t.Fatal(err)
			}
			switch m.Type {
			case TypeCodeSampled:
				generic["prompt"] = broken
			case TypeTestsSampled:
				generic["prompts"] = []any{broken, []byte{}}
			default:
				continue
			}
			if m.Data, err = marshal(generic); err != nil {
				t.Fatal(err)
			}
			m.Encoding = EncodingNone
			if _, err := m.Decode(); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s: token ids of %v: %v", m.Type, broken, err)
			}
		}
	}
}

// A length of more than the payload allocates nothing.
func TestHostileLengths(t *testing.T) {
	raw, err := marshal(samples()[4])
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		for _, c := range []byte{0xc6, 0xdb, 0xdd, 0xdf} {
			for _, n := range []uint32{1 << 16, 1 << 20, math.MaxUint32} {
				hostile := binary.BigEndian.AppendUint32(append(bytes.Clone(raw[:i]), c), n)
				hostile = append(hostile, raw[i:]...)
				m := messageOf(TypeCodeExecuted, hostile)
				var err error
				least := testing.AllocsPerRun(1, func() { _, err = m.Payload() })
				if err == nil || least > 100 {
					t.Fatalf("a length of %d at byte %d: %v, %v allocations", n, i, err, least)
				}
			}
		}
	}
}

// The first item without its fields ends the reading, so that a list of tiny items
// takes no memory.
func TestItemsWithoutFields(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("\x81\xa7answers\xdd\x00\x01\x00\x00")
	b.Write(bytes.Repeat([]byte{0x80}, 1<<16))
	m := messageOf(TypeCodeExecuted, b.Bytes())
	_, err := m.Payload()
	if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "fields are missing") {
		t.Errorf("65,536 empty answers: %v", err)
	}
}

// A map of more fields than its first byte can say.
type wide [20]int

func (w *wide) fields(c *coder) {
	for i := range w {
		field(c, string(rune('a'+i)), &w[i], integer)
	}
}

func TestWideMap(t *testing.T) {
	var w, back wide
	want := map[string]any{}
	for i := range w {
		w[i] = i
		want[string(rune('a'+i))] = int8(i)
	}
	raw, err := marshal(&w)
	if err != nil {
		t.Fatal(err)
	}
	generic := map[string]any{}
	if err := unmarshal(raw, &generic, false); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, generic); d != "" {
		t.Errorf("(-written +read):\n%s", d)
	}
	if err := unmarshal(raw, &back, false); err != nil || back != w {
		t.Errorf("%v, %v", back, err)
	}
}

// EncodeOnce sets no hash; Hash computes it on demand.
func TestHashAfterEncodeOnce(t *testing.T) {
	for _, p := range samples() {
		e, once := sampleEvent(p), sampleEvent(p)
		if _, err := Encode(e); err != nil {
			t.Fatal(err)
		}
		if _, err := EncodeOnce(once); err != nil {
			t.Fatal(err)
		}
		if once.Hash() != e.Hash() || len(e.Hash()) != 64 {
			t.Errorf("%s: hash %q, want %q", e.Type, once.Hash(), e.Hash())
		}
		if next := Caused(once, "x", sampleTime, &StageHeartbeat{}); next.CausationHash != e.Hash() {
			t.Errorf("%s: causation hash %q", e.Type, next.CausationHash)
		}
	}
}

// DecodeTexts differs from Decode only in token ids and log-probs.
func TestDecodeTexts(t *testing.T) {
	for _, p := range samples() {
		m, err := Encode(sampleEvent(p))
		if err != nil {
			t.Fatal(err)
		}
		whole, err := m.Decode()
		if err != nil {
			t.Fatal(err)
		}
		texts, err := m.DecodeTexts()
		if err != nil || texts.Hash() != whole.Hash() {
			t.Fatalf("%s: %v, hash %s, want %s", m.Type, err, texts.Hash(), whole.Hash())
		}
		without := cmpopts.IgnoreTypes(Int32s{}, Float32s{})
		if d := cmp.Diff(whole, texts, without, cmpopts.IgnoreUnexported(Event{})); d != "" {
			t.Errorf("%s without tokens:\n%s", m.Type, d)
		}
		if sampled, ok := texts.Payload.(*TestsSampled); ok && (sampled.Prompts[0] != nil || sampled.Suites[0][0].Tokens != nil || sampled.Suites[0][0].LogProbs != nil) {
			t.Errorf("token ids and log-probs were read: %+v", sampled)
		}
	}
}

// FuzzRead compares reading by fields with reading by tags.
func FuzzRead(f *testing.F) {
	for _, p := range samples() {
		raw, err := marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(p.EventType()), raw)
	}
	f.Fuzz(func(t *testing.T, typ string, raw []byte) {
		p := NewPayload(Type(typ))
		if p == nil || CheckShape(raw) != nil || unmarshal(raw, p, false) != nil {
			return
		}
		a, err := marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if len(a) != len(raw) {
			return // fields twice, or not as we write them
		}
		q := NewPayload(Type(typ))
		if err := msgpack.Unmarshal(raw, q); err != nil {
			t.Fatalf("read by fields, not by tags: %v", err)
		}
		if b, err := marshal(q); err != nil || !bytes.Equal(a, b) {
			t.Fatalf("read by fields:\n%q\nby tags, %v:\n%q", a, err, b)
		}
	})
}
