package events

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codea1/schemas"
)

var rewrite = flag.Bool("rewrite", false, "write golden files that are missing")

func TestEveryTypeHasASampleASchemaAndAName(t *testing.T) {
	seen := map[Type]bool{}
	for _, p := range samples() {
		seen[p.EventType()] = true
		if err := p.Validate(); err != nil {
			t.Errorf("%s: sample: %v", p.EventType(), err)
		}
	}
	for _, typ := range Types() {
		if !seen[typ] {
			t.Errorf("%s has no sample", typ)
		}
		if got := NewPayload(typ).EventType(); got != typ {
			t.Errorf("%s constructs a %s", typ, got)
		}
		for v := 1; v <= CurrentVersion(typ); v++ {
			if _, err := schemas.Read(string(typ), v); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestRoundTrip(t *testing.T) {
	for _, p := range samples() {
		t.Run(string(p.EventType()), func(t *testing.T) {
			e := sampleEvent(p)
			m, err := Encode(e)
			if err != nil {
				t.Fatal(err)
			}
			back, err := m.Decode()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(e, back, cmp.AllowUnexported(Event{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-sent +received):\n%s", diff)
			}
			again, err := Encode(back)
			if err != nil {
				t.Fatal(err)
			}
			if back.Hash() != e.Hash() || !bytes.Equal(m.Data, again.Data) {
				t.Error("encoding the decoded event gives other bytes")
			}
			generic, err := m.DecodeAny()
			if err != nil {
				t.Fatal(err)
			}
			if err := validate(t, e.Type, e.SchemaVersion, generic); err != nil {
				t.Error(err)
			}
		})
	}
}

// The golden files are payloads of every released schema version. Files are added
// and never changed. This build must read all of them.
func TestGoldenFiles(t *testing.T) {
	for _, p := range samples() {
		typ := p.EventType()
		m, err := Encode(sampleEvent(p))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := m.Raw()
		if err != nil {
			t.Fatal(err)
		}
		generic, err := m.DecodeAny()
		if err != nil {
			t.Fatal(err)
		}
		view, err := json.MarshalIndent(viewable(generic), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		base := filepath.Join("testdata", "golden", fmt.Sprintf("%s.v%d", typ, CurrentVersion(typ)))
		if _, err := os.Stat(base + ".msgpack"); *rewrite && errors.Is(err, os.ErrNotExist) {
			if err := errors.Join(os.WriteFile(base+".msgpack", raw, 0o644), os.WriteFile(base+".json", append(view, '\n'), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		golden, err := os.ReadFile(base + ".msgpack")
		if err != nil {
			t.Fatalf("%v (a new version needs its golden file: go test ./events -rewrite)", err)
		}
		if !bytes.Equal(golden, raw) {
			t.Errorf("%s: the encoding differs from %s.msgpack: the wire form has changed without a new version", typ, base)
		}
		goldenView, err := os.ReadFile(base + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(goldenView), string(view)+"\n"); diff != "" {
			t.Errorf("%s (-golden +now):\n%s", typ, diff)
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.msgpack"))
	if err != nil || len(files) < len(Types()) {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, file := range files {
		var typ Type
		var version int
		name := strings.TrimSuffix(filepath.Base(file), ".msgpack")
		i := strings.LastIndex(name, ".v")
		typ = Type(name[:i])
		if _, err := fmt.Sscanf(name[i:], ".v%d", &version); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := Message{Envelope: sampleEvent(NewPayload(typ)).Envelope, Data: data}
		m.SchemaVersion = version
		if _, err := m.Decode(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// viewable replaces packed binary by base64.
func viewable(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = viewable(v[k])
		}
	case []any:
		for i := range v {
			v[i] = viewable(v[i])
		}
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	}
	return v
}

func TestDecodeRefuses(t *testing.T) {
	good, err := Encode(sampleEvent(samples()[0]))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data     string
		encoding string
		want     error
	}{
		"nothing":                    {"", "", ErrMalformed},
		"not a map":                  {"\x93\x01\x02\x03", "", ErrMalformed},
		"a map of four billion":      {"\xdf\xff\xff\xff\xff", "", ErrMalformed},
		"a list of four billion":     {"\x81\xa1a\xdd\xff\xff\xff\xff", "", ErrMalformed},
		"a string beyond the end":    {"\x81\xa1a\xdb\x10\x00\x00\x00", "", ErrMalformed},
		"binary beyond the end":      {"\x81\xa1a\xc6\x10\x00\x00\x00", "", ErrMalformed},
		"bytes after the payload":    {"\x80\x00", "", ErrMalformed},
		"an extension":               {"\x81\xa1a\xd4\x01\x00", "", ErrMalformed},
		"the unused format byte":     {"\x81\xa1a\xc1", "", ErrMalformed},
		"deep nesting":               {"\x81\xa1a" + strings.Repeat("\x91", 100) + "\xc0", "", ErrMalformed},
		"a wrong field type":         {"\x81\xa5steps\xa3abc", "", ErrMalformed},
		"zstd that is none":          {"\x80", EncodingZstd, ErrMalformed},
		"an unknown encoding":        {"\x80", "br", ErrMalformed},
		"a payload over the limit":   {strings.Repeat("\x00", MaxPayloadBytes+1), "", ErrTooLarge},
		"a zstd bomb over the limit": {string(zstdEncoder.EncodeAll(make([]byte, MaxPayloadBytes+1), nil)), EncodingZstd, ErrTooLarge},
	} {
		m := good
		m.Data, m.Encoding = []byte(c.data), c.encoding
		if _, err := m.Decode(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	var field *FieldError
	m := good
	m.Data = []byte("\x80")
	if _, err := m.Decode(); !errors.As(err, &field) || field.Field != "attempt" {
		t.Errorf("an empty run.started: %v, want the field attempt named", err)
	}
}

func TestEncodeRefusesWhatIsTooLarge(t *testing.T) {
	p := samplePosed()
	p.Given = nil
	c := &CodeSampled{Posed: p, Answers: make([]Completion, 2)}
	for i := range c.Answers {
		c.Answers[i] = Completion{Finish: FinishStop, Tokens: make(Int32s, 1<<20), LogProbs: make(Float32s, 1<<20)}
	}
	if _, err := Encode(sampleEvent(c)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestLargePayloadsTravelCompressed(t *testing.T) {
	small, err := Encode(sampleEvent(samples()[9]))
	if err != nil || small.Encoding != EncodingNone {
		t.Errorf("small: %q, %v", small.Encoding, err)
	}
	p := samplePosed()
	p.Problem.Question = strings.Repeat("Return the sum. ", 1000)
	large, err := Encode(sampleEvent(&p))
	if err != nil || large.Encoding != EncodingZstd || len(large.Data) > 2000 {
		t.Errorf("large: %q, %d bytes, %v", large.Encoding, len(large.Data), err)
	}
}

// Empty lists are written as empty lists: the schemas allow no null.
func TestEmptyIsNotNil(t *testing.T) {
	p := samplePosed()
	p.Given = []string{"a", "b"}
	p.Plan.Suites = 0
	for _, payload := range []Payload{
		&CodeSampled{Posed: p, Answers: []Completion{{Finish: FinishGiven}, {Finish: FinishGiven}}},
		&TestsSampled{Posed: p, Codes: []string{"a", "b"}, Prompts: make([]Int32s, 2), Suites: make([][]Completion, 2)},
		&GroupRewarded{Plan: p.Plan, ProblemID: "p", Recipe: "golden", Code: make([]AnswerReward, 2), Test: make([][]SuiteReward, 2), TopVar: -1},
		&PolicyUpdated{Role: RoleCode, Version: 1, Step: 1, Checkpoint: Checkpoint{URI: "file:///x", SHA256: strings.Repeat("0", 64)}},
	} {
		m, err := Encode(sampleEvent(payload))
		if err != nil {
			t.Fatal(err)
		}
		generic, err := m.DecodeAny()
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, m.Type, m.SchemaVersion, generic); err != nil {
			t.Error(err)
		}
	}
}

func TestIDsFollowFromCauses(t *testing.T) {
	p := samplePosed()
	a := New("r1", "s000012-q0003", "x-0", sampleTime, &p)
	b := New("r1", "s000012-q0003", "y-1", sampleTime.AddDate(0, 0, 1), &p)
	if a.ID != b.ID {
		t.Error("the same group posed twice has two ids")
	}
	seen := map[string]string{}
	for _, run := range []string{"r1", "r2"} {
		for _, group := range []string{"s000012-q0003", "s000012-q0004"} {
			root := New(run, group, "x-0", sampleTime, &p)
			if _, err := Encode(root); err != nil {
				t.Fatal(err)
			}
			dropped := Caused(root, "y-0", sampleTime, &GroupDropped{Stage: "y", Reason: DropRetries})
			if dropped.CausationID != root.ID || dropped.CausationHash != root.Hash() || dropped.Group != group || dropped.Run != run {
				t.Errorf("%+v does not name its cause", dropped.Envelope)
			}
			for _, e := range []*Event{root, dropped} {
				name := run + "/" + group + "/" + string(e.Type)
				if other, ok := seen[e.ID]; ok {
					t.Errorf("%s and %s share an id", name, other)
				}
				seen[e.ID] = name
			}
		}
	}
}

func TestHeadersRoundTrip(t *testing.T) {
	for _, prefix := range []string{"ce-", "ce_"} {
		for _, p := range samples() {
			m, err := Encode(sampleEvent(p))
			if err != nil {
				t.Fatal(err)
			}
			headers := map[string]string{}
			m.Headers(prefix, func(name, value string) { headers[name] = value })
			back, err := ParseMessage(prefix, func(name string) string { return headers[name] }, m.Data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(m, back); diff != "" {
				t.Errorf("%s (-sent +received):\n%s", m.Type, diff)
			}
			for name := range headers {
				get := func(n string) string {
					if n == name {
						return "\x00"
					}
					return headers[n]
				}
				_, err := ParseMessage(prefix, get, m.Data)
				if free := name == prefix+attrSource || name == prefix+attrTraceParent || name == headerContentEncoding; (err == nil) != free {
					t.Errorf("a wrong %s header: %v", name, err)
				}
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, p := range samples() {
		m, err := Encode(sampleEvent(p))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(m.Type), m.Data, m.Encoding)
	}
	f.Fuzz(func(t *testing.T, typ string, data []byte, encoding string) {
		m := Message{Envelope: sampleEvent(samples()[0]).Envelope, Data: data, Encoding: encoding}
		m.Type = Type(typ)
		e, err := m.Decode()
		if err != nil {
			return
		}
		// A decoded event is valid, so it can be encoded and decoded again.
		again, err := Encode(e)
		if err != nil {
			t.Fatalf("decoded but not encodable: %v", err)
		}
		if _, err := again.Decode(); err != nil {
			t.Fatalf("written again but not readable: %v", err)
		}
	})
}

// rolloutEvent is a code.sampled of the paper's shape: 8 answers of 300 tokens.
func rolloutEvent() *Event {
	r := rand.New(rand.NewPCG(1, 2))
	p := samplePosed()
	p.Plan.Answers = 8
	c := &CodeSampled{Posed: p, Version: 1, Prompt: make(Int32s, 200)}
	for range 8 {
		answer := Completion{Text: strings.Repeat("return x + 1 # ", 60), Finish: FinishStop}
		for range 300 {
			answer.Tokens = append(answer.Tokens, r.Int32N(150_000))
			answer.LogProbs = append(answer.LogProbs, -r.Float32())
		}
		c.Answers = append(c.Answers, answer)
	}
	return sampleEvent(c)
}

func BenchmarkEncode(b *testing.B) {
	e := rolloutEvent()
	b.ReportAllocs()
	for b.Loop() {
		m, err := Encode(e)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(m.Data)))
	}
}

func BenchmarkDecode(b *testing.B) {
	m, err := Encode(rolloutEvent())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(m.Data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Decode(); err != nil {
			b.Fatal(err)
		}
	}
}

// A suite that was written in rounds keeps its turns, in the form of the struct tags. They
// fit its tokens and the plan, which only an evaluation has.
func TestTurns(t *testing.T) {
	written := func(change func(*TestsSampled)) *TestsSampled {
		suite := sampleCompletion("```python\nassert f(1)\n```\n")
		suite.Turns = []Turn{{Prompt: Int32s{1}, Text: "a", Tokens: 1, Finish: FinishStop}, {Prompt: Int32s{1, 2}, Text: "b", Tokens: 2, Finish: FinishLength}}
		s := &TestsSampled{Posed: samplePosed(), Codes: []string{"pass"}, Prompts: []Int32s{{1}}, Suites: [][]Completion{{suite}}}
		p := &s.Posed.Plan
		p.Purpose, p.Tag, p.Answers, p.Tests, p.Rounds = PurposeEval, "t", 1, 2, true
		change(s)
		return s
	}
	want := written(func(*TestsSampled) {})
	m, err := Encode(sampleEvent(want))
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Decode()
	if d := cmp.Diff(Payload(want), got.Payload); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	raw, err := m.Raw()
	if err != nil {
		t.Fatal(err)
	}
	if tags, err := marshalByTags(want); err != nil || !bytes.Equal(tags, raw) {
		t.Errorf("the struct tags give other bytes, %v", err)
	}
	if texts, err := m.DecodeTexts(); err != nil || texts.Payload.(*TestsSampled).Suites[0][0].Turns[1].Text != "b" {
		t.Errorf("without tokens: %v", err)
	}
	for field, change := range map[string]func(*TestsSampled){
		"plan.rounds":              func(s *TestsSampled) { s.Posed.Plan.Purpose = PurposeTrain },
		"suites[0][0].turns":       func(s *TestsSampled) { s.Suites[0][0].Turns[1].Tokens = 1 },
		"suites[0][0].turns[1]":    func(s *TestsSampled) { s.Suites[0][0].Turns[1].Tokens = -1 },
		"suites[0][0].turns[0].":   func(s *TestsSampled) { s.Suites[0][0].Turns[0].Finish = "x" },
		"turns, but the plan asks": func(s *TestsSampled) { s.Posed.Plan.Tests = 3 },
	} {
		if err := written(change).Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
