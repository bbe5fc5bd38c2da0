package events

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// remembered returns the number of payloads kept, and their bytes.
func remembered() (n, size int) {
	recents.mu.Lock()
	defer recents.mu.Unlock()
	if len(recents.queue) == 0 && len(recents.byID) > 0 {
		panic("a removed payload is still indexed")
	}
	return len(recents.queue), recents.bytes
}

// A remembered payload decodes as any other, with the same hash.
func TestRememberedPayloads(t *testing.T) {
	type outcome struct {
		Event *Event
		Hash  string
		Raw   []byte
	}
	decode := func(m *Message) (o outcome) {
		var err error
		if o.Event, err = m.Decode(); err != nil {
			t.Fatal(err)
		}
		o.Hash = o.Event.Hash()
		if err := m.WithRaw(func(raw []byte, hash func() string) error {
			o.Raw = bytes.Clone(raw)
			if hash() != o.Hash {
				t.Errorf("%s: hash %s, decoded it is %s", m.Type, hash(), o.Hash)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		o.Event.hash = ""
		return o
	}
	forget := Remember(1 << 20)
	defer forget()
	all := append(samples(), rolloutEvent().Payload)
	for _, p := range all {
		e := sampleEvent(p)
		m, err := Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		if kept := recents.of(&m) != nil; kept != (m.Encoding == EncodingZstd) {
			t.Errorf("%s of %d bytes is kept: %v", e.Type, len(m.Data), kept)
		}
		copied := m
		copied.Data = bytes.Clone(m.Data) // as from a bus
		quick := decode(&copied)
		recents.grow(-1 << 20)
		recents.grow(1 << 20)
		if recents.of(&m) != nil {
			t.Errorf("%s is kept without room", e.Type)
		}
		if d := cmp.Diff(decode(&m), quick, cmp.AllowUnexported(Event{})); d != "" || quick.Hash != e.Hash() {
			t.Errorf("%s: hash %s, want %s\n%s", e.Type, quick.Hash, e.Hash(), d)
		}
	}
}

// Other bytes under the ID of a remembered payload are decoded themselves.
func TestRememberedPayloadIsHeldToItsBytes(t *testing.T) {
	defer Remember(1 << 20)()
	e := rolloutEvent()
	m, err := Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	other := *e.Payload.(*CodeSampled)
	other.Version++
	o := sampleEvent(&other)
	o.ID = e.ID
	forget := Remember(-recents.limit) // as in another process
	n, err := Encode(o)
	forget()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []struct {
		Message
		version int
	}{{m, other.Version - 1}, {n, other.Version}} {
		p, err := m.Payload()
		if err != nil {
			t.Fatal(err)
		}
		if got := p.(*CodeSampled).Version; got != m.version {
			t.Errorf("version %d, want %d", got, m.version)
		}
	}
	// Damaged bytes and a wrong content encoding are errors, also for the payload
	// that was encoded last.
	for _, wrong := range []string{EncodingNone, "br"} {
		last, err := Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		if last.Encoding = wrong; recents.of(&last) != nil {
			t.Errorf("the encoding %q gave a remembered payload", wrong)
		}
		if _, err := last.Payload(); err == nil {
			t.Errorf("compressed bytes in the encoding %q were taken for a payload", wrong)
		}
	}
	m.Encoding, m.Data = EncodingZstd, bytes.Clone(m.Data)
	m.Data[len(m.Data)/2] ^= 1
	if err := m.WithRaw(func(raw []byte, _ func() string) error {
		if recents.of(&m) != nil {
			return fmt.Errorf("damaged bytes gave a remembered payload of %d bytes", len(raw))
		}
		return nil
	}); err != nil {
		t.Log(err) // usually the decoder's
	}
}

// The oldest payloads are removed first, no payload displaces all others, and
// none is kept after the last forget.
func TestRememberedPayloadsAreBounded(t *testing.T) {
	const limit = 1 << 20
	forget, forgetAgain := Remember(limit/2), Remember(limit/2)
	var made []Message
	for i := range 100 {
		e := rolloutEvent()
		e.ID = fmt.Sprintf("%032x", i)
		m, err := Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, m)
	}
	if n, size := remembered(); size > limit || size < limit*3/4 || n >= len(made) {
		t.Errorf("%d payloads of %d bytes are kept, limit %d", n, size, limit)
	}
	kept := slices.IndexFunc(made, func(m Message) bool { return recents.of(&m) != nil })
	for i := range made {
		if there := recents.of(&made[i]) != nil; there != (i >= kept) {
			t.Errorf("payload %d is kept: %v; the first is %d", i, there, kept)
		}
	}
	large := rolloutEvent().Payload.(*CodeSampled)
	for i := range large.Answers {
		large.Answers[i].Tokens = make(Int32s, limit/64)
		large.Answers[i].LogProbs = make(Float32s, limit/64)
	}
	if m, err := Encode(sampleEvent(large)); err != nil || recents.of(&m) != nil {
		t.Errorf("a payload of half the limit is kept: %v", err)
	}
	forget()
	forget()
	if _, size := remembered(); size > limit/2 || size == 0 {
		t.Errorf("%d bytes are kept, limit %d", size, limit/2)
	}
	forgetAgain()
	if n, size := remembered(); n != 0 || size != 0 {
		t.Errorf("%d payloads of %d bytes are kept after the last forget", n, size)
	}
}

// Goroutines encode, decode and hash at the same time.
func TestRememberedPayloadsOfMany(t *testing.T) {
	defer Remember(1 << 18)()
	want, err := Encode(rolloutEvent())
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 20 {
				e := rolloutEvent()
				e.ID = fmt.Sprintf("%032x", (i+j)%10)
				m, err := Encode(e)
				if err != nil {
					t.Error(err)
					return
				}
				back, err := m.Decode()
				if err != nil || !bytes.Equal(m.Data, want.Data) || back.Hash() != e.Hash() {
					t.Errorf("another payload came back: %v", err)
				}
			}
		})
	}
	group.Wait()
}
