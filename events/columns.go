package events

// The sampled payloads are written by column: first all texts, then all token
// ids, then all log-probs. Compression takes three times as long when texts and
// numbers alternate.

// CodeSampledColumns is a CodeSampled on the wire.
type CodeSampledColumns struct {
	Posed            ProblemPosed      `msgpack:"posed"`
	Version          int               `msgpack:"version"`           // policy version that sampled every token of every answer
	Prompt           Int32s            `msgpack:"prompt"`            // token ids, in planes; shared by all answers
	Answers          []SampledText     `msgpack:"answers"`           // M
	ResponseTokens   []SampledTokens   `msgpack:"response_tokens"`   // M: the answers' token ids
	ResponseLogProbs []SampledLogProbs `msgpack:"response_logprobs"` // M: the answers' log-probs
}

// TestsSampledColumns is a TestsSampled on the wire.
type TestsSampledColumns struct {
	Posed            ProblemPosed        `msgpack:"posed"`
	CodeVersion      int                 `msgpack:"code_version"`      // policy version that answered
	Version          int                 `msgpack:"version"`           // policy version that sampled every token of every suite
	Codes            []string            `msgpack:"codes"`             // M answers, as shown to the Test LLM
	Prompts          []Int32s            `msgpack:"prompts"`           // M; token ids, in planes; shared by the suites of an answer
	Suites           [][]SampledText     `msgpack:"suites"`            // M x N
	ResponseTokens   [][]SampledTokens   `msgpack:"response_tokens"`   // M x N: the suites' token ids
	ResponseLogProbs [][]SampledLogProbs `msgpack:"response_logprobs"` // M x N: the suites' log-probs
	Judged           *Judged             `msgpack:"judged,omitempty"`  // as in the code.judged of the group; absent without one
}

// SampledText is the text of a response.
type SampledText struct {
	Text   string `msgpack:"text"`
	Finish string `msgpack:"finish"`          // how it ended: stop, length or given
	Turns  []Turn `msgpack:"turns,omitempty"` // of a suite that was written in rounds: its responses
}

// SampledTokens are the token ids of a response.
type SampledTokens struct {
	Tokens Int32s `msgpack:"tokens"` // token ids of the response, in planes; the end token included if it was reached
}

// SampledLogProbs are the log-probs of a response's tokens.
type SampledLogProbs struct {
	LogProbs Float32s `msgpack:"logprobs"` // log p(token) in nats when sampled, little-endian float32; one per token
}

// WireForm returns a value of the Go type that has the fields of a payload of
// type t on the wire. For most types it is the payload's own.
func WireForm(t Type) any {
	switch t {
	case TypeCodeSampled:
		return new(CodeSampledColumns)
	case TypeTestsSampled:
		return new(TestsSampledColumns)
	}
	return NewPayload(t)
}

func (s *CodeSampled) fields(c *coder) {
	field(c, "posed", &s.Posed, object)
	field(c, "version", &s.Version, integer)
	field(c, "prompt", &s.Prompt, int32s)
	field(c, "answers", &s.Answers, textColumn)
	field(c, "response_tokens", &s.Answers, tokenColumn)
	field(c, "response_logprobs", &s.Answers, logProbColumn)
}

func (t *TestsSampled) fields(c *coder) {
	field(c, "posed", &t.Posed, object)
	field(c, "code_version", &t.CodeVersion, integer)
	field(c, "version", &t.Version, integer)
	field(c, "codes", &t.Codes, texts)
	field(c, "prompts", &t.Prompts, prompts)
	field(c, "suites", &t.Suites, textColumns)
	field(c, "response_tokens", &t.Suites, tokenColumns)
	field(c, "response_logprobs", &t.Suites, logProbColumns)
	optionalObject(c, "judged", &t.Judged)
}

func prompts(c *coder, all *[]Int32s) { list(c, all, int32s) }

func textColumn(c *coder, row *[]Completion)    { column(c, row, completionText) }
func tokenColumn(c *coder, row *[]Completion)   { column(c, row, completionTokens) }
func logProbColumn(c *coder, row *[]Completion) { column(c, row, completionLogProbs) }

func textColumns(c *coder, rows *[][]Completion)    { column(c, rows, textColumn) }
func tokenColumns(c *coder, rows *[][]Completion)   { column(c, rows, tokenColumn) }
func logProbColumns(c *coder, rows *[][]Completion) { column(c, rows, logProbColumn) }

// column codes one column of a list. The first column that is read makes the
// list, the others have its length.
func column[T any](c *coder, all *[]T, item func(*coder, *T)) {
	if c.writing {
		c.check(c.enc.EncodeArrayLen(len(*all)))
	} else if n := max(c.length(), 0); *all == nil {
		*all = make([]T, n)
	} else if n != len(*all) {
		c.fail("a column of %d items beside one of %d", n, len(*all))
	}
	for i := range *all {
		if c.err != nil {
			return
		}
		item(c, &(*all)[i])
	}
}

// A column holds one of these maps for each completion.
type (
	textOfCompletion     Completion
	tokensOfCompletion   Completion
	logProbsOfCompletion Completion
)

func completionText(c *coder, v *Completion)     { c.object((*textOfCompletion)(v)) }
func completionTokens(c *coder, v *Completion)   { c.object((*tokensOfCompletion)(v)) }
func completionLogProbs(c *coder, v *Completion) { c.object((*logProbsOfCompletion)(v)) }

var codeFinish = word([]string{FinishStop, FinishLength, FinishGiven})

func (t *textOfCompletion) fields(c *coder) {
	field(c, "text", &t.Text, text)
	field(c, "finish", &t.Finish, codeFinish)
	optionalList(c, "turns", &t.Turns, objects)
}

func (t *tokensOfCompletion) fields(c *coder) { field(c, "tokens", &t.Tokens, int32s) }

func (l *logProbsOfCompletion) fields(c *coder) { field(c, "logprobs", &l.LogProbs, float32s) }
