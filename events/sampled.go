package events

// Completion is one sampled response.
type Completion struct {
	Text     string   `msgpack:"text"`
	Tokens   Int32s   `msgpack:"tokens"`   // token ids of the response, the end token included if it was reached
	LogProbs Float32s `msgpack:"logprobs"` // log p(token) in nats when sampled; one per token
	Finish   string   `msgpack:"finish"`   // FinishStop or FinishLength
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
	switch c.Finish {
	case FinishStop, FinishLength, FinishGiven:
		return nil
	}
	return invalid(field+".finish", "%q is not one of stop, length, given", clip(c.Finish))
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
		codes[i] = ExtractCode(s.Answers[i].Text)
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
	CodeVersion int            `msgpack:"code_version"` // policy version that answered
	Version     int            `msgpack:"version"`      // policy version that sampled every token of every suite
	Codes       []string       `msgpack:"codes"`        // M answers, as shown to the Test LLM
	Prompts     []Int32s       `msgpack:"prompts"`      // M; shared by the suites of an answer
	Suites      [][]Completion `msgpack:"suites"`       // M x N
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
	}
}

func notNil[S ~[]E, E any](s S) S {
	if s == nil {
		return S{}
	}
	return s
}
