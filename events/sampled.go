package events

import (
	"math"
	"slices"
	"strings"

	"codea1/events/fenced"
)

// Completion is one sampled response.
type Completion struct {
	Text     string   `msgpack:"text"`
	Tokens   Int32s   `msgpack:"tokens"`          // token ids of the response, the end token included if it was reached
	LogProbs Float32s `msgpack:"logprobs"`        // log p(token) in nats when sampled; one per token
	Finish   string   `msgpack:"finish"`          // FinishStop or FinishLength
	Turns    []Turn   `msgpack:"turns,omitempty"` // of a suite that was written in rounds; empty for one response
}

// Turn is one response of a conversation with a model. The completion has the test of
// each response as a block of its text, and the tokens of all responses.
type Turn struct {
	Prompt Int32s `msgpack:"prompt"` // token ids of the conversation before the response
	Text   string `msgpack:"text"`   // the response as it was sampled
	Tokens int    `msgpack:"tokens"` // how many of the completion's tokens are its own
	Finish string `msgpack:"finish"`
}

func (t *Turn) fields(c *coder) {
	field(c, "prompt", &t.Prompt, int32s)
	field(c, "text", &t.Text, text)
	field(c, "tokens", &t.Tokens, integer)
	field(c, "finish", &t.Finish, codeFinish)
}

// How a completion ended.
const (
	FinishStop   = "stop"   // the model ended its turn
	FinishLength = "length" // the token limit cut it off
	FinishGiven  = "given"  // not sampled: the answer was posed with the problem
)

func (c *Completion) validate(field string) error {
	if err := checkText(field+".text", c.Text); err != nil {
		return err
	}
	if len(c.Tokens) != len(c.LogProbs) {
		return invalid(field+".logprobs", "%d log-probs for %d tokens", len(c.LogProbs), len(c.Tokens))
	}
	tokens := 0
	for i := range c.Turns {
		t := &c.Turns[i]
		if err := checkText(at(field+".turns", i)+".text", t.Text); err != nil {
			return err
		}
		if err := checkFinish(at(field+".turns", i), t.Finish); err != nil {
			return err
		}
		if err := checkCount(at(field+".turns", i)+".tokens", t.Tokens, 1<<30); err != nil {
			return err
		}
		tokens += t.Tokens
	}
	if len(c.Turns) > 0 && c.Tokens != nil && tokens != len(c.Tokens) { // nil: decoded for its texts
		return invalid(field+".turns", "%d tokens, but the completion has %d", tokens, len(c.Tokens))
	}
	return checkFinish(field, c.Finish)
}

func checkFinish(field, finish string) error {
	switch finish {
	case FinishStop, FinishLength, FinishGiven:
		return nil
	}
	return invalid(field+".finish", "%q is not one of stop, length, given", clip(finish))
}

// CodeSampled holds the completions of the Code LLM for a group. No completion spans
// two policy versions, because a sampler loads weights only between two calls: the
// version of a token is that of its event.
type CodeSampled struct {
	Posed   ProblemPosed `msgpack:"posed"`
	Version int          `msgpack:"version"` // policy version that sampled every token of every answer
	Prompt  Int32s       `msgpack:"prompt"`  // token ids; shared by all answers
	Answers []Completion `msgpack:"answers"` // M
}

// Codes returns the code in each answer.
func (s *CodeSampled) Codes() []string {
	codes := make([]string, len(s.Answers))
	for i := range codes {
		codes[i] = fenced.Code(s.Answers[i].Text)
	}
	return codes
}

// EventType implements Payload.
func (*CodeSampled) EventType() Type { return TypeCodeSampled }

// Validate implements Payload.
func (s *CodeSampled) Validate() error {
	if err := s.Posed.Validate(); err != nil {
		return err
	}
	if err := checkCount("version", s.Version, 1<<30); err != nil {
		return err
	}
	if len(s.Answers) != s.Posed.Plan.Answers {
		return invalid("answers", "%d answers, but the plan asks for %d", len(s.Answers), s.Posed.Plan.Answers)
	}
	for i := range s.Answers {
		if err := s.Answers[i].validate(at("answers", i)); err != nil {
			return err
		}
	}
	return nil
}

// TestsSampled holds the completions of the Test LLM for each answer of a group.
type TestsSampled struct {
	Posed       ProblemPosed   `msgpack:"posed"`
	CodeVersion int            `msgpack:"code_version"`     // policy version that answered
	Version     int            `msgpack:"version"`          // policy version that sampled every token of every suite
	Codes       []string       `msgpack:"codes"`            // M answers, as shown to the Test LLM
	Prompts     []Int32s       `msgpack:"prompts"`          // M; shared by the suites of an answer
	Suites      [][]Completion `msgpack:"suites"`           // M x N
	Judged      *Judged        `msgpack:"judged,omitempty"` // as in the code.judged of the group; absent without one
}

// EventType implements Payload.
func (*TestsSampled) EventType() Type { return TypeTestsSampled }

// Validate implements Payload.
func (t *TestsSampled) Validate() error {
	if err := t.Posed.Validate(); err != nil {
		return err
	}
	m, n := t.Posed.Plan.Answers, t.Posed.Plan.Suites
	if len(t.Codes) != m || len(t.Prompts) != m || len(t.Suites) != m {
		return invalid("suites", "%d codes, %d prompts, %d rows of suites, but the plan asks for %d answers",
			len(t.Codes), len(t.Prompts), len(t.Suites), m)
	}
	if err := checkCount("version", t.Version, 1<<30); err != nil {
		return err
	}
	for i := range t.Suites {
		if err := checkText(at("codes", i), t.Codes[i]); err != nil {
			return err
		}
		if len(t.Suites[i]) != n {
			return invalid(at("suites", i), "%d suites, but the plan asks for %d", len(t.Suites[i]), n)
		}
		for j := range t.Suites[i] {
			if err := t.Suites[i][j].validate(at(at("suites", i), j)); err != nil {
				return err
			}
			if turns := len(t.Suites[i][j].Turns); t.Posed.Plan.Rounds && turns != t.Posed.Plan.Tests {
				return invalid(at(at("suites", i), j)+".turns", "%d turns, but the plan asks for %d", turns, t.Posed.Plan.Tests)
			}
		}
	}
	return t.Judged.validate(m)
}

// CodeJudged holds the answers of a group with the findings of the judges that its plan
// names. Only runs with a judge have it.
type CodeJudged struct {
	Posed   ProblemPosed `msgpack:"posed"`
	Version int          `msgpack:"version"`          // policy version that answered
	Codes   []string     `msgpack:"codes"`            // M answers
	Judged  *Judged      `msgpack:"judged,omitempty"` // absent: the plan names no judge
}

func (j *CodeJudged) fields(c *coder) {
	field(c, "posed", &j.Posed, object)
	field(c, "version", &j.Version, integer)
	field(c, "codes", &j.Codes, texts)
	optionalObject(c, "judged", &j.Judged)
}

// EventType implements Payload.
func (*CodeJudged) EventType() Type { return TypeCodeJudged }

// Validate implements Payload.
func (j *CodeJudged) Validate() error {
	if err := j.Posed.Validate(); err != nil {
		return err
	}
	if err := checkCount("version", j.Version, 1<<30); err != nil {
		return err
	}
	if len(j.Codes) != j.Posed.Plan.Answers {
		return invalid("codes", "%d codes, but the plan asks for %d answers", len(j.Codes), j.Posed.Plan.Answers)
	}
	for i := range j.Codes {
		if err := checkText(at("codes", i), j.Codes[i]); err != nil {
			return err
		}
	}
	return j.Judged.validate(len(j.Codes))
}

// Judge is a kind of judgement about answers.
type Judge string

// The kinds of judges.
const (
	JudgeFindings Judge = "findings" // a scanner finds weaknesses in the code
	JudgeScore    Judge = "score"    // a reward model scores the code of the only code block
	JudgeVerdict  Judge = "verdict"  // a language model says whether the code is vulnerable
)

var (
	judgeKinds = []Judge{JudgeFindings, JudgeScore, JudgeVerdict}
	codeJudge  = word(judgeKinds)
)

// JoinJudges returns kinds as Plan.Judges holds them.
func JoinJudges(kinds ...Judge) string { return joinKinds(judgeKinds, kinds) }

// JudgeKinds returns the judges that the plan names.
func (p *Plan) JudgeKinds() []Judge { return splitKinds[Judge](p.Judges) }

// Judged holds the judgements of the answers of a group.
type Judged struct {
	Judges  string      `msgpack:"judges"`           // as in the plan
	Engine  string      `msgpack:"engine,omitempty"` // names and versions of the programs and models that judged
	Lines   int         `msgpack:"lines"`            // of the ground truth
	Answers []Judgement `msgpack:"answers"`          // M
}

func (j *Judged) fields(c *coder) {
	field(c, "judges", &j.Judges, text)
	optional(c, "engine", &j.Engine, text)
	field(c, "lines", &j.Lines, integer)
	field(c, "answers", &j.Answers, objects)
}

// Judgement holds the results of the judges for an answer.
type Judgement struct {
	Lines    int        `msgpack:"lines"`              // of the code
	Blocks   int        `msgpack:"blocks"`             // code blocks in the response
	Parses   bool       `msgpack:"parses,omitempty"`   // the code of the only block is Python; score only
	Findings []Finding  `msgpack:"findings,omitempty"` // findings only
	Score    float64    `msgpack:"score,omitempty"`    // score only
	Safe     bool       `msgpack:"safe,omitempty"`     // the verdict; verdict only
	Failures []Unjudged `msgpack:"failures,omitempty"` // judges that could not judge this answer
}

func (j *Judgement) fields(c *coder) {
	field(c, "lines", &j.Lines, integer)
	field(c, "blocks", &j.Blocks, integer)
	optional(c, "parses", &j.Parses, boolean)
	optionalList(c, "findings", &j.Findings, objects)
	optional(c, "score", &j.Score, float)
	optional(c, "safe", &j.Safe, boolean)
	optionalList(c, "failures", &j.Failures, objects)
}

// Finding is a weakness that a scanner found in an answer.
type Finding struct {
	ID         string `msgpack:"id"`         // of the scanner's test, for example B602
	Severity   string `msgpack:"severity"`   // SeverityLow, SeverityMedium or SeverityHigh
	Confidence string `msgpack:"confidence"` // one of the same words
	Line       int    `msgpack:"line"`       // from 1
}

// The severities of a finding.
const (
	SeverityLow    = "low"
	SeverityMedium = "medium"
	SeverityHigh   = "high"
)

var (
	severities   = []string{SeverityLow, SeverityMedium, SeverityHigh}
	codeSeverity = word(severities)
)

func (f *Finding) fields(c *coder) {
	field(c, "id", &f.ID, text)
	field(c, "severity", &f.Severity, codeSeverity)
	field(c, "confidence", &f.Confidence, codeSeverity)
	field(c, "line", &f.Line, integer)
}

// Unjudged says why a judge could not judge an answer: it has no measurement, which is
// not the same as a bad one.
type Unjudged struct {
	Judge  Judge  `msgpack:"by"`
	Reason string `msgpack:"reason"`
}

func (u *Unjudged) fields(c *coder) {
	field(c, "by", &u.Judge, codeJudge)
	field(c, "reason", &u.Reason, text)
}

// MaxFindings bounds the findings in one answer.
const MaxFindings = 64

// Failure returns why a judge could not judge the answer; empty if it did.
func (j *Judgement) Failure(judge Judge) string {
	for _, f := range j.Failures {
		if f.Judge == judge {
			return f.Reason
		}
	}
	return ""
}

// Has reports whether a judge judged the group.
func (j *Judged) Has(judge Judge) bool {
	return j != nil && slices.Contains(splitKinds[Judge](j.Judges), judge)
}

func (j *Judged) validate(answers int) error {
	if j == nil {
		return nil
	}
	if j.Judges == "" || j.Judges != JoinJudges(splitKinds[Judge](j.Judges)...) {
		return invalid("judged.judges", "%q is no list of the judges %s", clip(j.Judges), JoinJudges(judgeKinds...))
	}
	if err := checkText("judged.engine", j.Engine); err != nil {
		return err
	}
	if len(j.Answers) != answers {
		return invalid("judged.answers", "%d judgements for %d answers", len(j.Answers), answers)
	}
	if err := checkCount("judged.lines", j.Lines, MaxTextBytes); err != nil {
		return err
	}
	for i := range j.Answers {
		if err := j.Answers[i].validate(j); err != nil {
			return within("judged.answers", i, err)
		}
	}
	return nil
}

func (j *Judgement) validate(all *Judged) error {
	if err := checkCount("lines", j.Lines, MaxTextBytes); err != nil {
		return err
	}
	if err := checkCount("blocks", j.Blocks, MaxTextBytes); err != nil {
		return err
	}
	if err := checkCount("findings", len(j.Findings), MaxFindings); err != nil {
		return err
	}
	if math.IsNaN(j.Score) || math.IsInf(j.Score, 0) {
		return invalid("score", "%v is not finite", j.Score)
	}
	for i, f := range j.Findings {
		switch {
		case !slices.Contains(severities, f.Severity) || !slices.Contains(severities, f.Confidence):
			return invalid(at("findings", i), "severity %q and confidence %q are not two of %s", clip(f.Severity), clip(f.Confidence), strings.Join(severities, ", "))
		case f.Line < 0 || f.Line > MaxTextBytes:
			return invalid(at("findings", i), "line %d", f.Line)
		}
		if err := checkToken("findings.id", f.ID); err != nil {
			return err
		}
	}
	for i, f := range j.Failures {
		if !all.Has(f.Judge) || f.Reason == "" || len(j.Failures) > len(judgeKinds) {
			return invalid(at("failures", i), "want a reason of a judge of the group, have %q of %q", clip(f.Reason), clip(string(f.Judge)))
		}
		if err := checkText(at("failures", i), f.Reason); err != nil {
			return err
		}
	}
	return nil
}

// normalize replaces nil lists, because the schemas allow no null.
func (s *CodeSampled) normalize() {
	s.Prompt = notNil(s.Prompt)
	normalizeAll(s.Answers)
}

// normalize replaces nil lists, because the schemas allow no null.
func (t *TestsSampled) normalize() {
	for i := range t.Prompts {
		t.Prompts[i] = notNil(t.Prompts[i])
	}
	for i := range t.Suites {
		t.Suites[i] = notNil(t.Suites[i])
		normalizeAll(t.Suites[i])
	}
}

func normalizeAll(completions []Completion) {
	for i := range completions {
		c := &completions[i]
		c.Tokens, c.LogProbs = notNil(c.Tokens), notNil(c.LogProbs)
		for k := range c.Turns {
			c.Turns[k].Prompt = notNil(c.Turns[k].Prompt)
		}
	}
}

func notNil[S ~[]E, E any](s S) S {
	if s == nil {
		return S{}
	}
	return s
}
