package outbox

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/events/eventstest"
)

func TestRecordKeepsEveryByte(t *testing.T) {
	for _, e := range eventstest.Chain("r1", 3, 7) {
		want := eventstest.Encode(e)
		got, err := decodeRecord(recordOf(t, &want))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s:\n%s", e.Type, d)
		}
	}
}

func recordOf(t testing.TB, m *events.Message) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := encodeRecord(&buf, m); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// FuzzRecord checks the decoder: any bytes either are a record that encodes to
// an equal message, or an error.
func FuzzRecord(f *testing.F) {
	for _, e := range eventstest.Chain("r1", 3, 7) {
		m := eventstest.Encode(e)
		raw := recordOf(f, &m)
		f.Add(raw)
		f.Add(raw[:len(raw)/2])
	}
	f.Add([]byte{})
	f.Add([]byte{0x81, 0xa4, 'd', 'a', 't', 'a', 0xc6, 0x10, 0, 0, 0}) // states a bin of 256 MiB
	f.Add([]byte{0xdf, 0xff, 0xff, 0xff, 0xff})                        // states a map of 4 billion entries
	f.Add([]byte("\x81\xa7headers\xdf\xff\xff\xff\xff"))               // states 4 billion headers
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := decodeRecord(raw)
		if err != nil {
			return
		}
		back, err := decodeRecord(recordOf(t, &m))
		if err != nil {
			t.Fatal(err)
		}
		if back.Envelope != m.Envelope || back.Encoding != m.Encoding || !bytes.Equal(back.Data, m.Data) {
			t.Fatalf("%+v became %+v", m, back)
		}
	})
}
