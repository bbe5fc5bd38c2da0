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
	"pgregory.net/rapid"
)

// agrees checks that a payload is written by hand as by reflection, and read by
// hand as it was written.
func agrees(t rapid.TB, p Payload) {
	t.Helper()
	want, err := marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := appendPayload([]byte{}, p)
	if err != nil || !bytes.Equal(raw, want) {
		t.Fatalf("%s by hand, %v:\n%q\nby reflection:\n%q", p.EventType(), err, raw, want)
	}
	m := messageOf(p.EventType(), raw)
	back, quick := readPayload(&m, raw, false)
	if !quick {
		t.Fatalf("%s: what was written by hand is not read by hand: %q", p.EventType(), raw)
	}
	if again, err := appendPayload(nil, back); err != nil || !bytes.Equal(again, raw) {
		t.Fatalf("%s: what was read is written as other bytes, %v:\n%q\nwas:\n%q", p.EventType(), err, again, raw)
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

func TestByHandIsAsByReflection(t *testing.T) {
	anyPayload[ProblemPosed](t)
	anyPayload[CodeSampled](t)
	anyPayload[TestsSampled](t)
	anyPayload[CodeExecuted](t)
	anyPayload[GroupRewarded](t)
	for _, p := range samples() {
		if _, ok := p.(wired); ok {
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

// A payload that is written otherwise, by another program, is read all the same.
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
		if _, quick := readPayload(&m, other, false); quick {
			t.Errorf("%s: fields in another order are read by hand", m.Type)
		}
		e, err := m.Decode()
		if err != nil {
			t.Fatalf("%s: %v", m.Type, err)
		}
		if diff := cmp.Diff(p, e.Payload, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-sent +received):\n%s", m.Type, diff)
		}
	}
}

// Columns of different lengths belong to no completions.
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

// A length is no reason to allocate.
func TestLengthsAreNotBelieved(t *testing.T) {
	raw, err := appendPayload(nil, samples()[4])
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		for _, c := range []byte{0xc6, 0xdb, 0xdd, 0xdf} {
			for _, n := range []uint32{1 << 16, 1 << 20, math.MaxUint32} {
				hostile := binary.BigEndian.AppendUint32(append(bytes.Clone(raw[:i]), c), n)
				hostile = append(hostile, raw[i:]...)
				m := messageOf(TypeCodeExecuted, hostile)
				least := testing.AllocsPerRun(1, func() { readPayload(&m, hostile, false) })
				if _, quick := readPayload(&m, hostile, false); quick || least > 100 {
					t.Fatalf("a length of %d at byte %d: read %v, %v allocations", n, i, quick, least)
				}
			}
		}
	}
}

// An event that was only sent has a hash when somebody asks.
func TestHashOfWhatWasEncodedOnce(t *testing.T) {
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
			t.Errorf("%s: an event names %q as the hash of its cause", e.Type, next.CausationHash)
		}
	}
}

// Without tokens an event is the same in all else, its hash included.
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

// FuzzRead: what is read by hand is what is read by reflection.
func FuzzRead(f *testing.F) {
	for _, p := range samples() {
		raw, err := appendPayload(nil, p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(p.EventType()), raw)
	}
	f.Fuzz(func(t *testing.T, typ string, raw []byte) {
		m := Message{Envelope: Envelope{Type: Type(typ), SchemaVersion: CurrentVersion(Type(typ))}}
		if m.SchemaVersion == 0 {
			return
		}
		quick, ok := readPayload(&m, raw, false)
		if !ok {
			return
		}
		thorough, err := m.decodeAnyForm(raw)
		if err != nil {
			t.Fatalf("read by hand, not by reflection: %v", err)
		}
		a, err := marshal(quick)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := marshal(thorough); err != nil || !bytes.Equal(a, b) {
			t.Fatalf("read by hand:\n%q\nby reflection, %v:\n%q", a, err, b)
		}
	})
}
