package events

import (
	"bytes"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
)

// The struct tags say the same as the fields methods. These methods let msgpack
// write and read by reflection over the tags, so that tests can compare.

func marshalByTags(p Payload) ([]byte, error) {
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	enc.SetSortMapKeys(true)
	enc.UseCompactInts(true)
	err := enc.Encode(p)
	return buf.Bytes(), err
}

// columns takes completions apart.
func columns(row []Completion) (texts []SampledText, tokens []SampledTokens, logProbs []SampledLogProbs) {
	texts, tokens, logProbs = make([]SampledText, len(row)), make([]SampledTokens, len(row)), make([]SampledLogProbs, len(row))
	for i := range row {
		c := &row[i]
		texts[i], tokens[i], logProbs[i] = SampledText{c.Text, c.Finish, c.Turns}, SampledTokens{c.Tokens}, SampledLogProbs{c.LogProbs}
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
		row[i] = Completion{Text: texts[i].Text, Tokens: tokens[i].Tokens, LogProbs: logProbs[i].LogProbs, Finish: texts[i].Finish, Turns: texts[i].Turns}
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
		Judged: t.Judged,
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
		Suites: make([][]Completion, len(w.Suites)), Judged: w.Judged,
	}
	var err error
	for i := range t.Suites {
		if t.Suites[i], err = completions(w.Suites[i], w.ResponseTokens[i], w.ResponseLogProbs[i]); err != nil {
			return err
		}
	}
	return nil
}

// EncodeMsgpack implements msgpack.CustomEncoder.
func (p Int32s) EncodeMsgpack(e *msgpack.Encoder) error {
	return e.EncodeBytes(p.appendTo([]byte{}))
}

// DecodeMsgpack implements msgpack.CustomDecoder.
func (p *Int32s) DecodeMsgpack(d *msgpack.Decoder) error {
	b, err := decodeBin(d)
	*p = int32sOf(b)
	return err
}

// EncodeMsgpack implements msgpack.CustomEncoder.
func (p Float32s) EncodeMsgpack(e *msgpack.Encoder) error {
	return e.EncodeBytes(p.appendTo([]byte{}))
}

// DecodeMsgpack implements msgpack.CustomDecoder.
func (p *Float32s) DecodeMsgpack(d *msgpack.Decoder) error {
	b, err := decodeBin(d)
	*p = float32sOf(b)
	return err
}

// decodeBin returns the bytes of a bin; none for nil.
func decodeBin(d *msgpack.Decoder) ([]byte, error) {
	b, err := d.DecodeBytes()
	if err == nil && len(b)%4 != 0 {
		return nil, fmt.Errorf("%w: packed values of %d bytes, want a multiple of 4", ErrMalformed, len(b))
	}
	return b, err
}

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
