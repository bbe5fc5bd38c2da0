package events

import "slices"

// Verdict is the outcome of one test on one answer.
type Verdict string

// The verdicts.
const (
	VerdictPass    Verdict = "pass"    // returned the expected value
	VerdictFail    Verdict = "fail"    // returned another value
	VerdictRaised  Verdict = "raised"  // raised an exception, exited or crashed
	VerdictTimeout Verdict = "timeout" // ran over the time limit
	VerdictNotRun  Verdict = "not_run" // the answer does not load, or the test was not kept
)

var verdicts = []Verdict{VerdictPass, VerdictFail, VerdictRaised, VerdictTimeout, VerdictNotRun}

var codeVerdict = word(verdicts)

func codeVerdicts(c *coder, all *[]Verdict) { list(c, all, codeVerdict) }

// Failed reports whether the test ran and the answer did not pass it.
func (v Verdict) Failed() bool {
	return v == VerdictFail || v == VerdictRaised || v == VerdictTimeout
}

func (v Verdict) check(field string) error {
	if slices.Contains(verdicts, v) {
		return nil
	}
	return invalid(field, "%q is not a verdict", clip(string(v)))
}

// TestStatus is the result of running a test on the ground truth.
type TestStatus string

// The statuses of a test. A test that is not kept is discarded.
const (
	StatusKept       TestStatus = "kept"       // the ground truth ran it, and it is unique in its suite
	StatusUnparsable TestStatus = "unparsable" // not `assert call(...) == literal`
	StatusRaised     TestStatus = "raised"     // the ground truth raised or timed out
	StatusDuplicate  TestStatus = "duplicate"  // same call and true value as an earlier test of its suite
)

var statuses = []TestStatus{StatusKept, StatusUnparsable, StatusRaised, StatusDuplicate}

var codeStatus = word(statuses)

// ExecutedTest is one statement of a suite with its status and verdict. On the
// wire it is an ExecutedTestShort.
type ExecutedTest struct {
	Source   string     `msgpack:"src"`              // the statement as written, cut at a limit
	Status   TestStatus `msgpack:"status"`           //
	Call     string     `msgpack:"call,omitempty"`   // the call, normalised by Python's ast; empty if unparsable
	Stated   string     `msgpack:"stated,omitempty"` // the stated value, a Python literal
	Expected string     `msgpack:"expect,omitempty"` // the true value, a Python literal; kept tests only
	Wrong    bool       `msgpack:"wrong,omitempty"`  // wrong as stated: kept, but the stated value differs from the true value
	Verdict  Verdict    `msgpack:"verdict"`          // on the suite's own answer; VerdictNotRun unless kept
	Detail   string     `msgpack:"detail,omitempty"` // why: parse error, exception, or the value returned
}

// ExecutedSuite is one suite after execution.
type ExecutedSuite struct {
	Tests       []ExecutedTest `msgpack:"tests,omitempty"`
	Chars       int            `msgpack:"chars"`             // characters (code points) of the response
	Unprintable int            `msgpack:"unprintable"`       // of those, outside Python's string.printable
	Failure     string         `msgpack:"failure,omitempty"` // infrastructure failure: the suite is masked, not scored
}

func (s *ExecutedSuite) fields(c *coder) {
	optionalList(c, "tests", &s.Tests, executedTests)
	field(c, "chars", &s.Chars, integer)
	field(c, "unprintable", &s.Unprintable, integer)
	optional(c, "failure", &s.Failure, text)
}

// Counts returns the number of kept tests, the number of those that are wrong as
// stated, and the number of discarded tests. In R_val, `valid` is kept and
// `invalid` is wrong plus discarded.
func (s *ExecutedSuite) Counts() (kept, wrong, discarded int) {
	for i := range s.Tests {
		if s.Tests[i].Status != StatusKept {
			discarded++
			continue
		}
		kept++
		if s.Tests[i].Wrong {
			wrong++
		}
	}
	return kept, wrong, discarded
}

// GoldenVerdict is the outcome of one golden test on one answer.
type GoldenVerdict struct {
	Verdict   Verdict `msgpack:"verdict"`
	InProcess bool    `msgpack:"in_process,omitempty"` // the test ran inside the answer's process: weaker evidence
	Detail    string  `msgpack:"detail,omitempty"`
}

func (g *GoldenVerdict) fields(c *coder) {
	field(c, "verdict", &g.Verdict, codeVerdict)
	optional(c, "in_process", &g.InProcess, boolean)
	optional(c, "detail", &g.Detail, text)
}

// ExecutedAnswer is one answer with the verdicts of every test that ran on it.
type ExecutedAnswer struct {
	Loads      bool            `msgpack:"loads"`
	LoadError  string          `msgpack:"load_error,omitempty"`
	Suites     []ExecutedSuite `msgpack:"suites,omitempty"`  // N
	Historical []Verdict       `msgpack:"hist,omitempty"`    // one per historical test of the group
	Golden     []GoldenVerdict `msgpack:"golden,omitempty"`  // one per golden test, or per line of a predict problem
	Failure    string          `msgpack:"failure,omitempty"` // infrastructure failure: the answer is masked, not scored
}

func (a *ExecutedAnswer) fields(c *coder) {
	field(c, "loads", &a.Loads, boolean)
	optional(c, "load_error", &a.LoadError, text)
	optionalList(c, "suites", &a.Suites, objects)
	optionalList(c, "hist", &a.Historical, codeVerdicts)
	optionalList(c, "golden", &a.Golden, objects)
	optional(c, "failure", &a.Failure, text)
}

// CodeExecuted holds the verdicts of a group. Rewards of any recipe can be
// computed from it without another rollout or execution.
type CodeExecuted struct {
	Plan        Plan             `msgpack:"plan"`
	ProblemID   string           `msgpack:"problem"`
	CodeVersion int              `msgpack:"code_version"`    // policy version that answered
	TestVersion int              `msgpack:"test_version"`    // policy version that wrote the tests
	Given       bool             `msgpack:"given,omitempty"` // the answers came with the problem
	Historical  []HistoricalTest `msgpack:"hist,omitempty"`
	Answers     []ExecutedAnswer `msgpack:"answers"`          // M
	Cross       *Cross           `msgpack:"cross,omitempty"`  // absent: the plan does not ask for it
	Probes      []Probes         `msgpack:"probes,omitempty"` // one of each kind that was measured
	Judged      *Judged          `msgpack:"judged,omitempty"` // absent: the plan names no judge

	// Predict has the kinds of the predictions of a predict problem. The golden verdicts of
	// an answer are those of its lines.
	Predict []Predicted `msgpack:"predict,omitempty"`
}

func (e *CodeExecuted) fields(c *coder) {
	field(c, "plan", &e.Plan, object)
	field(c, "problem", &e.ProblemID, text)
	field(c, "code_version", &e.CodeVersion, integer)
	field(c, "test_version", &e.TestVersion, integer)
	optional(c, "given", &e.Given, boolean)
	optionalList(c, "hist", &e.Historical, objects)
	field(c, "answers", &e.Answers, objects)
	optionalObject(c, "cross", &e.Cross)
	optionalList(c, "probes", &e.Probes, objects)
	optionalObject(c, "judged", &e.Judged)
	optionalList(c, "predict", &e.Predict, codePredictedKinds)
}

// EventType implements Payload.
func (*CodeExecuted) EventType() Type { return TypeCodeExecuted }

// Validate implements Payload.
func (e *CodeExecuted) Validate() error {
	if err := e.Plan.Validate(); err != nil {
		return err
	}
	if e.ProblemID == "" {
		return invalid("problem", "is empty")
	}
	if err := checkHistorical(e.Historical); err != nil {
		return err
	}
	if len(e.Answers) != e.Plan.Answers {
		return invalid("answers", "%d answers, but the plan asks for %d", len(e.Answers), e.Plan.Answers)
	}
	for i := range e.Answers {
		if err := e.Answers[i].validate(e.Plan.Suites, len(e.Historical)); err != nil {
			return within("answers", i, err)
		}
	}
	for i := range e.Probes {
		if err := e.Probes[i].validate(); err != nil {
			return within("probes", i, err)
		}
		if e.Probed(e.Probes[i].Probe) != &e.Probes[i] {
			return invalid(at("probes", i), "there are two of %s", e.Probes[i].Probe)
		}
	}
	if err := e.checkPredict(); err != nil {
		return err
	}
	if e.Cross != nil {
		if err := e.Cross.validate(len(e.Answers)); err != nil {
			return err
		}
	}
	return e.Judged.validate(len(e.Answers))
}

// checkPredict checks that each answer to a predict problem has a verdict for each line.
func (e *CodeExecuted) checkPredict() error {
	if err := checkCount("predict", len(e.Predict), MaxPredictions); err != nil {
		return err
	}
	for i, kind := range e.Predict {
		if err := kind.check(at("predict", i)); err != nil {
			return err
		}
	}
	for m := range e.Answers {
		if a := &e.Answers[m]; len(e.Predict) > 0 && a.Loads && len(a.Golden) != len(e.Predict) {
			return invalid(at("answers", m)+".golden", "%d verdicts for %d predictions", len(a.Golden), len(e.Predict))
		}
	}
	return nil
}

// normalize replaces nil rows, because the schemas allow no null.
func (e *CodeExecuted) normalize() {
	if e.Cross != nil {
		for _, rows := range [][]Bits{e.Cross.Passed, e.Cross.Failed} {
			for m := range rows {
				rows[m] = notNil(rows[m])
			}
		}
	}
	for i := range e.Probes {
		e.Probes[i].Hits = notNil(e.Probes[i].Hits)
		for t := range e.Probes[i].Hits {
			e.Probes[i].Hits[t] = notNil(e.Probes[i].Hits[t])
		}
	}
}

func (a *ExecutedAnswer) validate(suites, historical int) error {
	if a.Failure != "" {
		return nil
	}
	if len(a.Suites) != suites {
		return invalid("suites", "%d suites, but the plan asks for %d", len(a.Suites), suites)
	}
	if len(a.Historical) != historical {
		return invalid("hist", "%d verdicts for %d historical tests", len(a.Historical), historical)
	}
	for j, v := range a.Historical {
		if err := v.check(""); err != nil {
			return within("hist", j, err)
		}
	}
	for j := range a.Golden {
		if err := a.Golden[j].Verdict.check(""); err != nil {
			return within("golden", j, err)
		}
	}
	for j := range a.Suites {
		if err := a.Suites[j].validate(); err != nil {
			return within("suites", j, err)
		}
	}
	return nil
}

func (s *ExecutedSuite) validate() error {
	if s.Chars < 0 || s.Unprintable < 0 || s.Unprintable > s.Chars {
		return invalid("unprintable", "%d of %d characters", s.Unprintable, s.Chars)
	}
	for i := range s.Tests {
		if err := s.Tests[i].validate(); err != nil {
			return within("tests", i, err)
		}
	}
	return nil
}

func (t *ExecutedTest) validate() error {
	if !slices.Contains(statuses, t.Status) {
		return invalid("status", "%q is not a status", clip(string(t.Status)))
	}
	if t.Status == StatusKept && (t.Call == "" || t.Expected == "") {
		return invalid("", "a kept test has a call and an expected value")
	}
	if t.Wrong && t.Status != StatusKept {
		return invalid("wrong", "set on a test that was not kept")
	}
	return t.Verdict.check("verdict")
}
