package events

import (
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
)

// The sampled payloads travel by column: first all texts, then all token ids,
// then all log-probs. Side by side, a compressor tries in vain to find text in
// the digits of the numbers, and takes three times as long.

// CodeSampledColumns is a CodeSampled as it travels.
type CodeSampledColumns struct {
	Posed            ProblemPosed      `msgpack:"posed"`
	Version          int               `msgpack:"version"`           // policy version that answered
	Prompt           Int32s            `msgpack:"prompt"`            // token ids, in planes; shared by all answers
	Answers          []SampledText     `msgpack:"answers"`           // M
	ResponseTokens   []SampledTokens   `msgpack:"response_tokens"`   // M: the answers' token ids
	ResponseLogProbs []SampledLogProbs `msgpack:"response_logprobs"` // M: the answers' log-probs
}

// TestsSampledColumns is a TestsSampled as it travels.
type TestsSampledColumns struct {
	Posed            ProblemPosed        `msgpack:"posed"`
	CodeVersion      int                 `msgpack:"code_version"`      // policy version that answered
	Version          int                 `msgpack:"version"`           // policy version that wrote the tests
	Codes            []string            `msgpack:"codes"`             // M programs, as shown to the Test LLM
	Prompts          []Int32s            `msgpack:"prompts"`           // M; token ids, in planes; shared by the suites of an answer
	Suites           [][]SampledText     `msgpack:"suites"`            // M x N
	ResponseTokens   [][]SampledTokens   `msgpack:"response_tokens"`   // M x N: the suites' token ids
	ResponseLogProbs [][]SampledLogProbs `msgpack:"response_logprobs"` // M x N: the suites' log-probs
}

// SampledText is the text of a response.
type SampledText struct {
	Text   string `msgpack:"text"`
	Finish string `msgpack:"finish"` // how it ended: stop, length or given
}

// SampledTokens are its token ids.
type SampledTokens struct {
	Tokens Int32s `msgpack:"tokens"` // token ids of the response, in planes; the end token included if it was reached
}

// SampledLogProbs are their log-probs.
type SampledLogProbs struct {
	LogProbs Float32s `msgpack:"logprobs"` // log p(token) in nats when sampled, little-endian float32; one per token
}

var (
	_ msgpack.CustomEncoder = (*CodeSampled)(nil)
	_ msgpack.CustomDecoder = (*CodeSampled)(nil)
	_ msgpack.CustomEncoder = (*TestsSampled)(nil)
	_ msgpack.CustomDecoder = (*TestsSampled)(nil)
)

// WireForm returns a value of the Go type whose fields are those of a payload
// of type t on the wire: for most types that of the payload itself.
func WireForm(t Type) any {
	switch t {
	case TypeCodeSampled:
		return new(CodeSampledColumns)
	case TypeTestsSampled:
		return new(TestsSampledColumns)
	}
	return NewPayload(t)
}

// columns takes completions apart.
func columns(row []Completion) (texts []SampledText, tokens []SampledTokens, logProbs []SampledLogProbs) {
	texts, tokens, logProbs = make([]SampledText, len(row)), make([]SampledTokens, len(row)), make([]SampledLogProbs, len(row))
	for i := range row {
		c := &row[i]
		texts[i], tokens[i], logProbs[i] = SampledText{c.Text, c.Finish}, SampledTokens{c.Tokens}, SampledLogProbs{c.LogProbs}
	}
	return texts, tokens, logProbs
}

// completions puts columns together again.
func completions(texts []SampledText, tokens []SampledTokens, logProbs []SampledLogProbs) ([]Completion, error) {
	if len(tokens) != len(texts) || len(logProbs) != len(texts) {
		return nil, fmt.Errorf("%w: %d texts, %d rows of tokens, %d of log-probs", ErrMalformed, len(texts), len(tokens), len(logProbs))
	}
	row := make([]Completion, len(texts))
	for i := range row {
		row[i] = Completion{Text: texts[i].Text, Tokens: tokens[i].Tokens, LogProbs: logProbs[i].LogProbs, Finish: texts[i].Finish}
	}
	return row, nil
}

// EncodeMsgpack implements msgpack.CustomEncoder.
func (c *CodeSampled) EncodeMsgpack(e *msgpack.Encoder) error {
	w := CodeSampledColumns{Posed: c.Posed, Version: c.Version, Prompt: c.Prompt}
	w.Answers, w.ResponseTokens, w.ResponseLogProbs = columns(c.Answers)
	return e.Encode(&w)
}

// DecodeMsgpack implements msgpack.CustomDecoder.
func (c *CodeSampled) DecodeMsgpack(d *msgpack.Decoder) error {
	var w CodeSampledColumns
	if err := d.Decode(&w); err != nil {
		return err
	}
	answers, err := completions(w.Answers, w.ResponseTokens, w.ResponseLogProbs)
	*c = CodeSampled{Posed: w.Posed, Version: w.Version, Prompt: w.Prompt, Answers: answers}
	return err
}

// EncodeMsgpack implements msgpack.CustomEncoder.
func (t *TestsSampled) EncodeMsgpack(e *msgpack.Encoder) error {
	w := TestsSampledColumns{
		Posed: t.Posed, CodeVersion: t.CodeVersion, Version: t.Version, Codes: t.Codes, Prompts: t.Prompts,
		Suites: make([][]SampledText, len(t.Suites)), ResponseTokens: make([][]SampledTokens, len(t.Suites)), ResponseLogProbs: make([][]SampledLogProbs, len(t.Suites)),
	}
	for i, row := range t.Suites {
		w.Suites[i], w.ResponseTokens[i], w.ResponseLogProbs[i] = columns(row)
	}
	return e.Encode(&w)
}

// DecodeMsgpack implements msgpack.CustomDecoder.
func (t *TestsSampled) DecodeMsgpack(d *msgpack.Decoder) error {
	var w TestsSampledColumns
	if err := d.Decode(&w); err != nil {
		return err
	}
	if len(w.ResponseTokens) != len(w.Suites) || len(w.ResponseLogProbs) != len(w.Suites) {
		return fmt.Errorf("%w: %d rows of suites, %d of tokens, %d of log-probs", ErrMalformed, len(w.Suites), len(w.ResponseTokens), len(w.ResponseLogProbs))
	}
	*t = TestsSampled{
		Posed: w.Posed, CodeVersion: w.CodeVersion, Version: w.Version, Codes: w.Codes, Prompts: w.Prompts,
		Suites: make([][]Completion, len(w.Suites)),
	}
	var err error
	for i := range t.Suites {
		if t.Suites[i], err = completions(w.Suites[i], w.ResponseTokens[i], w.ResponseLogProbs[i]); err != nil {
			return err
		}
	}
	return nil
}
