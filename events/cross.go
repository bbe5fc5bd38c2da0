package events

import "math/bits"

// MaxCrossTests bounds the tests of a Cross.
const MaxCrossTests = 2048

// Cross holds the verdicts of the tests of all suites of a group on all its
// answers, for recipes that compare them. Bit i of a row is test i of
// CodeExecuted.CrossTests.
type Cross struct {
	Tests  int    `msgpack:"tests"`  // the tests that were run
	Passed []Bits `msgpack:"passed"` // M; empty for an answer that does not load or that was lost
	Failed []Bits `msgpack:"failed"` // M; a test that was not run is in neither
}

func (x *Cross) fields(c *coder) {
	field(c, "tests", &x.Tests, integer)
	field(c, "passed", &x.Passed, bitRows)
	field(c, "failed", &x.Failed, bitRows)
}

// NewCross returns a Cross without a verdict.
func NewCross(tests, answers int) *Cross {
	return &Cross{Tests: tests, Passed: make([]Bits, answers), Failed: make([]Bits, answers)}
}

// Set adds the verdict of a test on an answer.
func (x *Cross) Set(answer, test int, v Verdict) {
	if x.Passed[answer] == nil {
		x.Passed[answer], x.Failed[answer] = make(Bits, x.rowBytes()), make(Bits, x.rowBytes())
	}
	switch {
	case v == VerdictPass:
		x.Passed[answer].set(test)
	case v.Failed():
		x.Failed[answer].set(test)
	}
}

func (x *Cross) rowBytes() int { return (x.Tests + 7) / 8 }

func (x *Cross) validate(answers int) error {
	if err := checkCount("cross.tests", x.Tests, MaxCrossTests); err != nil {
		return err
	}
	if len(x.Passed) != answers || len(x.Failed) != answers {
		return invalid("cross.passed", "%d and %d rows for %d answers", len(x.Passed), len(x.Failed), answers)
	}
	for m, passed := range x.Passed {
		failed := x.Failed[m]
		if len(passed) != len(failed) || len(passed) != 0 && len(passed) != x.rowBytes() {
			return invalid(at("cross.passed", m), "%d and %d bytes for %d tests", len(passed), len(failed), x.Tests)
		}
		for i := range passed {
			if passed[i]&failed[i] != 0 || 8*i+bits.Len8(passed[i]|failed[i]) > x.Tests {
				return invalid(at("cross.passed", m), "byte %d has a test that passed and failed, or that is not one of %d", i, x.Tests)
			}
		}
	}
	return nil
}

// CrossTest is a call with the value that it must return.
type CrossTest struct{ Call, Value string }

// CrossTests returns the distinct tests of a group, at most MaxCrossTests: each
// kept test with the true value, and the one that is wrong as stated with the
// stated value too. Tests that were lost to infrastructure failures are left out.
func (e *CodeExecuted) CrossTests() []CrossTest {
	var tests []CrossTest
	seen := map[CrossTest]bool{}
	add := func(t CrossTest) {
		if !seen[t] && len(tests) < MaxCrossTests {
			seen[t] = true
			tests = append(tests, t)
		}
	}
	e.keptTests(func(t *ExecutedTest) {
		add(CrossTest{t.Call, t.Expected})
		if t.Wrong {
			add(CrossTest{t.Call, t.Stated})
		}
	})
	return tests
}

// KeptTests returns the kept tests of a group with their true values.
func (e *CodeExecuted) KeptTests() map[CrossTest]bool {
	kept := make(map[CrossTest]bool)
	e.keptTests(func(t *ExecutedTest) { kept[CrossTest{t.Call, t.Expected}] = true })
	return kept
}

// keptTests visits the kept tests that were not lost. First are the first tests of all
// suites, then the second ones, so that a long suite does not displace the tests of the
// others.
func (e *CodeExecuted) keptTests(visit func(*ExecutedTest)) {
	for i, more := 0, true; more; i++ {
		more = false
		for m := range e.Answers {
			if e.Answers[m].Failure != "" {
				continue
			}
			for n := range e.Answers[m].Suites {
				suite := &e.Answers[m].Suites[n]
				if suite.Failure != "" || i >= len(suite.Tests) {
					continue
				}
				more = true
				if t := &suite.Tests[i]; t.Status == StatusKept {
					visit(t)
				}
			}
		}
	}
}

// Bits is a row of bits. Bit i is bit i%8 of byte i/8, the lowest first.
type Bits []byte

// Has reports whether bit i is set. A bit after the end is not.
func (b Bits) Has(i int) bool { return i/8 < len(b) && b[i/8]&(1<<(i%8)) != 0 }

// Count returns the number of bits that are set.
func (b Bits) Count() (n int) {
	for _, x := range b {
		n += bits.OnesCount8(x)
	}
	return n
}

// Add sets the bits of another row of the same length.
func (b Bits) Add(other Bits) {
	for i := range b {
		b[i] |= other[i]
	}
}

func (b Bits) set(i int) { b[i/8] |= 1 << (i % 8) }

func bitRows(c *coder, all *[]Bits) { list(c, all, bitRow) }

func bitRow(c *coder, b *Bits) {
	if c.writing {
		c.check(c.enc.EncodeBytes(*b))
	} else {
		*b = append(Bits{}, c.bytes()...)
	}
}
