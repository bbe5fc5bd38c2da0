package events

import (
	"fmt"
	"slices"
)

// Purpose is the use of a group: training or evaluation.
type Purpose string

// The two purposes.
const (
	PurposeTrain Purpose = "train" // rewarded; both policies train on it
	PurposeEval  Purpose = "eval"  // scored; no policy trains on it
)

var codePurpose = word([]Purpose{PurposeTrain, PurposeEval})

// Plan holds the step and slot of a group and its sampling parameters. Every event
// of the group carries it, so that a worker needs no other input.
type Plan struct {
	Purpose     Purpose `msgpack:"purpose"`
	Tag         string  `msgpack:"tag,omitempty"`    // eval: which evaluation, for example "before"
	Step        int     `msgpack:"step"`             // training step, from 1; eval: steps trained so far
	Epoch       int     `msgpack:"epoch"`            // pass over the problem set, from 0
	Slot        int     `msgpack:"slot"`             // index within the step, from 0: the canonical order of groups
	Groups      int     `msgpack:"groups"`           // groups in the step (eval: in the evaluation)
	CodeVersion int     `msgpack:"code_version"`     // oldest policy version of the Code LLM that may answer
	TestVersion int     `msgpack:"test_version"`     // oldest policy version of the Test LLM that may write suites
	Answers     int     `msgpack:"m"`                // M: answers per problem
	Suites      int     `msgpack:"n"`                // N: suites per answer
	Tests       int     `msgpack:"k"`                // K: tests wanted per suite
	Temperature float64 `msgpack:"temp"`             // sampling temperature of both roles
	CodeTokens  int     `msgpack:"code_tokens"`      // token limit of a completion of the Code LLM
	TestTokens  int     `msgpack:"test_tokens"`      // token limit of a completion of the Test LLM
	Seed        uint64  `msgpack:"seed"`             // root of the group's sampling seeds
	Cross       bool    `msgpack:"cross,omitempty"`  // run the tests of all suites on all answers
	Probes      string  `msgpack:"probes,omitempty"` // kinds of probes to measure, separated by commas
	Rounds      bool    `msgpack:"rounds,omitempty"` // eval: a suite is a conversation of K rounds with one test each
	Judges      string  `msgpack:"judges,omitempty"` // judges of the answers, separated by commas
}

func (p *Plan) fields(c *coder) {
	field(c, "purpose", &p.Purpose, codePurpose)
	optional(c, "tag", &p.Tag, text)
	field(c, "step", &p.Step, integer)
	field(c, "epoch", &p.Epoch, integer)
	field(c, "slot", &p.Slot, integer)
	field(c, "groups", &p.Groups, integer)
	field(c, "code_version", &p.CodeVersion, integer)
	field(c, "test_version", &p.TestVersion, integer)
	field(c, "m", &p.Answers, integer)
	field(c, "n", &p.Suites, integer)
	field(c, "k", &p.Tests, integer)
	field(c, "temp", &p.Temperature, float)
	field(c, "code_tokens", &p.CodeTokens, integer)
	field(c, "test_tokens", &p.TestTokens, integer)
	field(c, "seed", &p.Seed, unsigned)
	optional(c, "cross", &p.Cross, boolean)
	optional(c, "probes", &p.Probes, text)
	optional(c, "rounds", &p.Rounds, boolean)
	optional(c, "judges", &p.Judges, text)
}

// GroupID returns the group's name. It is unique in its run and sorts by step and
// slot.
func (p *Plan) GroupID() string {
	if p.Purpose == PurposeEval {
		return fmt.Sprintf("e-%s-%04d", p.Tag, p.Slot)
	}
	return fmt.Sprintf("s%06d-q%04d", p.Step, p.Slot)
}

// Validate checks the plan's ranges.
func (p *Plan) Validate() error {
	switch p.Purpose {
	case PurposeTrain:
	case PurposeEval:
		if err := checkToken("plan.tag", p.Tag); err != nil {
			return err
		}
	default:
		return invalid("plan.purpose", "%q is neither %q nor %q", clip(string(p.Purpose)), PurposeTrain, PurposeEval)
	}
	for _, c := range []struct {
		field        string
		value, least int
	}{
		{"step", p.Step, 0}, {"epoch", p.Epoch, 0}, {"slot", p.Slot, 0}, {"groups", p.Groups, 1},
		{"code_version", p.CodeVersion, 0}, {"test_version", p.TestVersion, 0},
		{"m", p.Answers, 1}, {"n", p.Suites, 0}, {"k", p.Tests, 0},
		{"code_tokens", p.CodeTokens, 0}, {"test_tokens", p.TestTokens, 0},
	} {
		if c.value < c.least || c.value > 1<<30 {
			return invalid("plan."+c.field, "%d is outside %d to 2^30", c.value, c.least)
		}
	}
	if p.Rounds && (p.Purpose != PurposeEval || p.Tests == 0) {
		return invalid("plan.rounds", "only the suites of an evaluation are written in rounds, one test each")
	}
	if p.Slot >= p.Groups {
		return invalid("plan.slot", "%d, but the step has %d groups", p.Slot, p.Groups)
	}
	if p.Answers*max(p.Suites, 1) > MaxItems {
		return invalid("plan.n", "%d x %d suites, over the limit of %d", p.Answers, p.Suites, MaxItems)
	}
	if !(p.Temperature > 0) || p.Temperature > 100 {
		return invalid("plan.temp", "%v is outside (0, 100]", p.Temperature)
	}
	if p.Probes != JoinProbes(p.ProbeKinds()...) {
		return invalid("plan.probes", "%q is no list of the kinds %s", clip(p.Probes), JoinProbes(probeKinds...))
	}
	if p.Judges != JoinJudges(p.JudgeKinds()...) {
		return invalid("plan.judges", "%q is no list of the judges %s", clip(p.Judges), JoinJudges(judgeKinds...))
	}
	return nil
}

// Problem is an item of a problem set.
type Problem struct {
	ID         string   `msgpack:"id"`
	Question   string   `msgpack:"question"`
	EntryPoint string   `msgpack:"entry"`            // the name the tests call
	Solution   string   `msgpack:"solution"`         // the ground truth, Python source
	Golden     []string `msgpack:"golden,omitempty"` // golden tests to run on the answers; eval and the golden recipe only
	Atol       float64  `msgpack:"atol,omitempty"`   // tolerance of numbers in golden tests `assert CALL == LITERAL`; 0: exact

	// Predict makes it a predict problem: an answer has one literal per item, in lines. It
	// is compared with literals and never run. The question is the whole prompt.
	Predict []Prediction `msgpack:"predict,omitempty"`
}

func (p *Problem) fields(c *coder) {
	field(c, "id", &p.ID, text)
	field(c, "question", &p.Question, text)
	field(c, "entry", &p.EntryPoint, text)
	field(c, "solution", &p.Solution, text)
	optionalList(c, "golden", &p.Golden, texts)
	optional(c, "atol", &p.Atol, float)
	optionalList(c, "predict", &p.Predict, objects)
}

// Predicted is the kind of a fact about a run of the ground truth that a predict
// problem asks for.
type Predicted string

// The kinds of facts.
const (
	PredictOutput Predicted = "output" // the value that a call returns
	PredictInput  Predicted = "input"  // the arguments with which it returns a value
	PredictNext   Predicted = "next"   // the line that runs next
	PredictState  Predicted = "state"  // the value and the type of a variable, as a tuple
)

var (
	predictedKinds = []Predicted{PredictOutput, PredictInput, PredictNext, PredictState}
	codePredicted  = word(predictedKinds)
)

func codePredictedKinds(c *coder, all *[]Predicted) { list(c, all, codePredicted) }

func (p Predicted) check(field string) error {
	if slices.Contains(predictedKinds, p) {
		return nil
	}
	return invalid(field, "%q is not one of output, input, next, state", clip(string(p)))
}

// MaxPredictions bounds the lines of an answer to a predict problem.
const MaxPredictions = 64

// Prediction has the accepted texts of one line of an answer to a predict problem.
type Prediction struct {
	Kind     Predicted `msgpack:"kind" json:"kind"`
	Accepted []string  `msgpack:"accepted" json:"accepted"` // Python literals; the line must equal one of them
}

func (p *Prediction) fields(c *coder) {
	field(c, "kind", &p.Kind, codePredicted)
	field(c, "accepted", &p.Accepted, texts)
}

// CheckPredictions checks the limits of predictions. It does not parse their literals.
func CheckPredictions(field string, all []Prediction) error {
	if err := checkCount(field, len(all), MaxPredictions); err != nil {
		return err
	}
	for i, p := range all {
		if err := p.Kind.check(at(field, i) + ".kind"); err != nil {
			return err
		}
		if len(p.Accepted) == 0 || len(p.Accepted) > MaxPredictions {
			return invalid(at(field, i)+".accepted", "want 1 to %d literals, have %d", MaxPredictions, len(p.Accepted))
		}
		for j, literal := range p.Accepted {
			if err := checkText(at(at(field, i)+".accepted", j), literal); err != nil {
				return err
			}
		}
	}
	return nil
}

// Validate checks that the problem is complete and within limits.
func (p *Problem) Validate() error {
	if p.ID == "" || len(p.ID) > 4*MaxTokenBytes {
		return invalid("problem.id", "want 1 to %d bytes, have %d", 4*MaxTokenBytes, len(p.ID))
	}
	for _, t := range []struct{ field, text string }{
		{"question", p.Question}, {"entry", p.EntryPoint}, {"solution", p.Solution},
	} {
		if t.text == "" {
			return invalid("problem."+t.field, "is empty")
		}
		if err := checkText("problem."+t.field, t.text); err != nil {
			return err
		}
	}
	if !(p.Atol >= 0 && p.Atol <= 1) {
		return invalid("problem.atol", "%v is outside 0 to 1", p.Atol)
	}
	if err := checkCount("problem.golden", len(p.Golden), MaxItems); err != nil {
		return err
	}
	for i, g := range p.Golden {
		if err := checkText(at("problem.golden", i), g); err != nil {
			return err
		}
	}
	return CheckPredictions("problem.predict", p.Predict)
}

// HistoricalTest is a test of the Mistake Book, as retrieved for a problem.
type HistoricalTest struct {
	Call     string `msgpack:"call"`   // Python expression, for example "solve([1, 2])"
	Expected string `msgpack:"expect"` // the true value, a Python literal
	Count    int    `msgpack:"count"`  // count of the entry when retrieved
}

func (h *HistoricalTest) fields(c *coder) {
	field(c, "call", &h.Call, text)
	field(c, "expect", &h.Expected, text)
	field(c, "count", &h.Count, integer)
}

// ProblemPosed opens a group.
type ProblemPosed struct {
	Plan       Plan             `msgpack:"plan"`
	Problem    Problem          `msgpack:"problem"`
	Historical []HistoricalTest `msgpack:"hist,omitempty"`  // from the Mistake Book, most frequent first
	Given      []string         `msgpack:"given,omitempty"` // eval: answers to judge in place of sampled ones
}

func (p *ProblemPosed) fields(c *coder) {
	field(c, "plan", &p.Plan, object)
	field(c, "problem", &p.Problem, object)
	optionalList(c, "hist", &p.Historical, objects)
	optionalList(c, "given", &p.Given, texts)
}

// EventType implements Payload.
func (*ProblemPosed) EventType() Type { return TypeProblemPosed }

// Validate implements Payload.
func (p *ProblemPosed) Validate() error {
	if err := p.Plan.Validate(); err != nil {
		return err
	}
	if err := p.Problem.Validate(); err != nil {
		return err
	}
	if len(p.Given) > 0 && len(p.Given) != p.Plan.Answers {
		return invalid("given", "%d answers, but the plan asks for %d", len(p.Given), p.Plan.Answers)
	}
	if len(p.Problem.Predict) > 0 && p.Plan.Suites+len(p.Historical)+len(p.Problem.Golden) > 0 {
		return invalid("problem.predict", "an answer to a predict problem is not run: it has no suites, historical and golden tests")
	}
	return checkHistorical(p.Historical)
}

func checkHistorical(tests []HistoricalTest) error {
	if err := checkCount("hist", len(tests), MaxItems); err != nil {
		return err
	}
	for i, h := range tests {
		if h.Call == "" || h.Expected == "" {
			return invalid(at("hist", i), "call and expect must not be empty")
		}
		if err := checkText(at("hist", i), h.Call+h.Expected); err != nil {
			return err
		}
	}
	return nil
}
