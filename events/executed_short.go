package events

import "strings"

// ExecutedTestShort is an ExecutedTest on the wire. Most statements have the form
// `assert CALL == STATED`, and most state the true value: then the call, the
// stated value and the expected value are left out.
type ExecutedTestShort struct {
	Source   string     `msgpack:"src"`              // the statement as written, cut at a limit
	Status   TestStatus `msgpack:"status"`           //
	Split    *int       `msgpack:"split,omitempty"`  // src is `assert CALL == STATED`, and this is the number of bytes of the call: call and stated are left out
	Call     string     `msgpack:"call,omitempty"`   // the call, normalised by Python's ast; empty if unparsable
	Stated   string     `msgpack:"stated,omitempty"` // the value the test stated, a Python literal
	Expected *string    `msgpack:"expect,omitempty"` // the ground truth's value, a Python literal; left out when it is the stated value of a kept test
	Wrong    bool       `msgpack:"wrong,omitempty"`  // kept, but the stated value differs from the truth
	Verdict  Verdict    `msgpack:"verdict"`          // on the suite's own answer; VerdictNotRun unless kept
	Detail   string     `msgpack:"detail,omitempty"` // why: parse error, exception, or the value returned
}

const (
	assertion = "assert "
	equals    = " == "
)

// split returns the number of bytes of the call; false unless the source is
// `assert CALL == STATED`.
func (t *ExecutedTest) split() (int, bool) {
	rest, ok := strings.CutPrefix(t.Source, assertion)
	if !ok || len(rest) != len(t.Call)+len(equals)+len(t.Stated) {
		return 0, false
	}
	return len(t.Call), strings.HasPrefix(rest, t.Call) && rest[len(t.Call):len(t.Call)+len(equals)] == equals && strings.HasSuffix(rest, t.Stated)
}

// join sets the call and the stated value from the source; false unless the
// source is `assert CALL == STATED` with a call of so many bytes.
func (t *ExecutedTest) join(split int) bool {
	rest, ok := strings.CutPrefix(t.Source, assertion)
	if !ok || split < 0 || len(rest) < split+len(equals) || rest[split:split+len(equals)] != equals {
		return false
	}
	t.Call, t.Stated = rest[:split], rest[split+len(equals):]
	return true
}

// unsaid returns the expected value of a test on the wire without one.
func (t *ExecutedTest) unsaid() string {
	if t.Status == StatusKept {
		return t.Stated
	}
	return ""
}

// JSONSchemaAlias makes the JSON Schema describe the short form.
func (ExecutedTest) JSONSchemaAlias() any { return ExecutedTestShort{} }

func executedTests(c *coder, all *[]ExecutedTest) { list(c, all, executedTest) }

// executedTest codes a test in its short form.
func executedTest(c *coder, t *ExecutedTest) {
	s := &c.test
	*s = shortTest{test: t}
	if c.writing {
		s.at, s.split = t.split()
		s.states = t.Expected != t.unsaid()
	}
	c.object(s)
	if c.writing {
		return
	}
	if s.split && !t.join(s.at) {
		c.fail("a test of %d bytes cannot be split at %d", len(t.Source), s.at)
	}
	if !s.states {
		t.Expected = t.unsaid()
	}
}

// shortTest is a test while it is coded.
type shortTest struct {
	test   *ExecutedTest
	split  bool // the field split is there, and call and stated are not
	at     int  // its value
	states bool // the field expect is there
}

func (s *shortTest) fields(c *coder) {
	t := s.test
	field(c, "src", &t.Source, text)
	field(c, "status", &t.Status, codeStatus)
	present(c, "split", &s.at, &s.split, integer)
	if !c.writing || !s.split {
		optional(c, "call", &t.Call, text)
		optional(c, "stated", &t.Stated, text)
	}
	present(c, "expect", &t.Expected, &s.states, text)
	optional(c, "wrong", &t.Wrong, boolean)
	field(c, "verdict", &t.Verdict, codeVerdict)
	optional(c, "detail", &t.Detail, text)
}
