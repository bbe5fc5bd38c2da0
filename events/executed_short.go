package events

import (
	"fmt"
	"strings"

	"github.com/vmihailenco/msgpack/v5"
)

// ExecutedTestShort is an ExecutedTest as it travels. Most statements are
// `assert CALL == STATED`, and most state what is true: then call, stated value
// and expected value need not be said again.
type ExecutedTestShort struct {
	Source   string     `msgpack:"src"`              // the statement as written, cut at a limit
	Status   TestStatus `msgpack:"status"`           //
	Split    *int       `msgpack:"split,omitempty"`  // src is `assert CALL == STATED`, with a call of so many bytes: call and stated are left out
	Call     string     `msgpack:"call,omitempty"`   // the call, normalised by Python's ast; empty if unparsable
	Stated   string     `msgpack:"stated,omitempty"` // the value the test stated, a Python literal
	Expected *string    `msgpack:"expect,omitempty"` // the ground truth's value, a Python literal; left out of a kept test that states it
	Wrong    bool       `msgpack:"wrong,omitempty"`  // kept, but the stated value differs from the truth
	Verdict  Verdict    `msgpack:"verdict"`          // on the suite's own answer; VerdictNotRun unless kept
	Detail   string     `msgpack:"detail,omitempty"` // why: parse error, exception, or the value returned
}

const (
	assertion = "assert "
	equals    = " == "
)

// split returns how many bytes the call has where call and stated value stand in
// the source and nothing else does.
func (t *ExecutedTest) split() (int, bool) {
	rest, ok := strings.CutPrefix(t.Source, assertion)
	if !ok || len(rest) != len(t.Call)+len(equals)+len(t.Stated) {
		return 0, false
	}
	return len(t.Call), strings.HasPrefix(rest, t.Call) && rest[len(t.Call):len(t.Call)+len(equals)] == equals && strings.HasSuffix(rest, t.Stated)
}

// join takes call and stated value from the source; false if they are not there.
func (t *ExecutedTest) join(split int) bool {
	rest, ok := strings.CutPrefix(t.Source, assertion)
	if !ok || split < 0 || len(rest) < split+len(equals) || rest[split:split+len(equals)] != equals {
		return false
	}
	t.Call, t.Stated = rest[:split], rest[split+len(equals):]
	return true
}

// unsaid is what the test is expected to give where nothing says so.
func (t *ExecutedTest) unsaid() string {
	if t.Status == StatusKept {
		return t.Stated
	}
	return ""
}

var (
	_ msgpack.CustomEncoder = (*ExecutedTest)(nil)
	_ msgpack.CustomDecoder = (*ExecutedTest)(nil)
)

// JSONSchemaAlias makes the schema that of the wire.
func (ExecutedTest) JSONSchemaAlias() any { return ExecutedTestShort{} }

// EncodeMsgpack implements msgpack.CustomEncoder.
func (t *ExecutedTest) EncodeMsgpack(e *msgpack.Encoder) error {
	short := ExecutedTestShort{Source: t.Source, Status: t.Status, Wrong: t.Wrong, Verdict: t.Verdict, Detail: t.Detail}
	if n, ok := t.split(); ok {
		short.Split = &n
	} else {
		short.Call, short.Stated = t.Call, t.Stated
	}
	if t.Expected != t.unsaid() {
		short.Expected = &t.Expected
	}
	return e.Encode(&short)
}

// DecodeMsgpack implements msgpack.CustomDecoder.
func (t *ExecutedTest) DecodeMsgpack(d *msgpack.Decoder) error {
	var short ExecutedTestShort
	if err := d.Decode(&short); err != nil {
		return err
	}
	*t = ExecutedTest{
		Source: short.Source, Status: short.Status, Call: short.Call, Stated: short.Stated,
		Wrong: short.Wrong, Verdict: short.Verdict, Detail: short.Detail,
	}
	if short.Split != nil && !t.join(*short.Split) {
		return fmt.Errorf("%w: a test of %d bytes cannot be split at %d", ErrMalformed, len(t.Source), *short.Split)
	}
	t.Expected = t.unsaid()
	if short.Expected != nil {
		t.Expected = *short.Expected
	}
	return nil
}

func (t *ExecutedTest) write(w *writer) {
	n, split := t.split()
	said := t.Expected != t.unsaid()
	w.fields(3, split, !split && t.Call != "", !split && t.Stated != "", said, t.Wrong, t.Detail != "")
	w.textField("src", t.Source)
	w.textField("status", string(t.Status))
	if split {
		w.intField("split", n)
	} else {
		w.optionalText("call", t.Call)
		w.optionalText("stated", t.Stated)
	}
	if said {
		w.textField("expect", t.Expected)
	}
	w.optionalBool("wrong", t.Wrong)
	w.textField("verdict", string(t.Verdict))
	w.optionalText("detail", t.Detail)
}

const leastTest = 1 + 5 + 8 + 9

func (t *ExecutedTest) read(r *reader) {
	left := r.fields()
	t.Source = r.wantText(&left, "src")
	r.want(&left, "status")
	t.Status = oneOf(r, statuses)
	if r.has(&left, "split") {
		if !t.join(r.int()) {
			r.fail()
		}
	} else {
		t.Call = r.optionalText(&left, "call")
		t.Stated = r.optionalText(&left, "stated")
	}
	if t.Expected = t.unsaid(); r.has(&left, "expect") {
		t.Expected = r.text()
	}
	t.Wrong = r.optionalBool(&left, "wrong")
	r.want(&left, "verdict")
	t.Verdict = oneOf(r, verdicts)
	t.Detail = r.optionalText(&left, "detail")
	r.end(left)
}
