package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// document is the part of tokenizer.json that a byte-level BPE uses.
type document struct {
	AddedTokens  []documentAdded    `json:"added_tokens"`
	Normalizer   *documentPart      `json:"normalizer"`
	PreTokenizer *documentPart      `json:"pre_tokenizer"`
	Decoder      *documentPart      `json:"decoder"`
	Model        documentVocabulary `json:"model"`
}

type documentAdded struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

type documentPart struct {
	Type           string         `json:"type"`
	PreTokenizers  []documentPart `json:"pretokenizers"`
	Pattern        map[string]any `json:"pattern"`
	Behavior       string         `json:"behavior"`
	Invert         bool           `json:"invert"`
	AddPrefixSpace bool           `json:"add_prefix_space"`
	UseRegex       *bool          `json:"use_regex"`
}

type documentVocabulary struct {
	Type                    string            `json:"type"`
	Dropout                 *float64          `json:"dropout"`
	UnknownToken            *string           `json:"unk_token"`
	ContinuingSubwordPrefix string            `json:"continuing_subword_prefix"`
	EndOfWordSuffix         string            `json:"end_of_word_suffix"`
	ByteFallback            bool              `json:"byte_fallback"`
	IgnoreMerges            bool              `json:"ignore_merges"`
	Vocab                   map[string]int32  `json:"vocab"`
	Merges                  []json.RawMessage `json:"merges"`
}

// Parse reads the content of a tokenizer.json. It returns ErrUnsupported for a file
// that does not have Qwen2's normalizer, split pattern and kind of merges.
func Parse(data []byte) (*Tokenizer, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("not a tokenizer.json: %w", err)
	}
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	vocabulary := make(map[string]int32, len(d.Model.Vocab))
	for spelled, id := range d.Model.Vocab {
		token, err := unspell(spelled)
		if err != nil {
			return nil, err
		}
		vocabulary[token] = id
	}
	order := make([][2]string, len(d.Model.Merges))
	for i, raw := range d.Model.Merges {
		m, err := parseMerge(raw)
		if err != nil {
			return nil, fmt.Errorf("merge %d: %w", i, err)
		}
		order[i] = m
	}
	added := make([]addedToken, len(d.AddedTokens))
	for i, a := range d.AddedTokens {
		added[i] = addedToken{a.ID, a.Content, a.Special}
	}
	return build(vocabulary, order, added)
}

// parseMerge reads "left right" or ["left", "right"].
func parseMerge(raw json.RawMessage) ([2]string, error) {
	var spelled []string
	if err := json.Unmarshal(raw, &spelled); err != nil {
		var line string
		if err := json.Unmarshal(raw, &line); err != nil {
			return [2]string{}, err
		}
		spelled = strings.Split(line, " ")
	}
	if len(spelled) != 2 {
		return [2]string{}, fmt.Errorf("has %d parts, want 2", len(spelled))
	}
	left, err := unspell(spelled[0])
	if err != nil {
		return [2]string{}, err
	}
	right, err := unspell(spelled[1])
	return [2]string{left, right}, err
}

func (d *document) check() error {
	m := d.Model
	switch {
	case m.Type != "BPE":
		return fmt.Errorf("model type %q, want BPE", m.Type)
	case m.Dropout != nil && *m.Dropout != 0:
		return fmt.Errorf("BPE dropout %g", *m.Dropout)
	case m.ContinuingSubwordPrefix != "" || m.EndOfWordSuffix != "":
		return fmt.Errorf("BPE with a subword prefix or a word suffix")
	case m.ByteFallback || m.IgnoreMerges:
		return fmt.Errorf("BPE with byte_fallback or ignore_merges")
	case d.Normalizer == nil || d.Normalizer.Type != "NFC":
		return fmt.Errorf("a normalizer other than NFC")
	case d.Decoder == nil || d.Decoder.Type != "ByteLevel":
		return fmt.Errorf("a decoder other than ByteLevel")
	}
	for _, a := range d.AddedTokens {
		if a.SingleWord || a.LStrip || a.RStrip || a.Normalized {
			return fmt.Errorf("added token %q is not matched literally", a.Content)
		}
	}
	p := d.PreTokenizer
	if p == nil || p.Type != "Sequence" || len(p.PreTokenizers) != 2 {
		return fmt.Errorf("a pre-tokenizer other than Split and ByteLevel")
	}
	split, level := p.PreTokenizers[0], p.PreTokenizers[1]
	if split.Type != "Split" || split.Behavior != "Isolated" || split.Invert || split.Pattern["Regex"] != SplitPattern {
		return fmt.Errorf("a split pattern other than Qwen2's")
	}
	if level.Type != "ByteLevel" || level.AddPrefixSpace || level.UseRegex == nil || *level.UseRegex {
		return fmt.Errorf("a ByteLevel pre-tokenizer with a prefix space or a pattern")
	}
	return nil
}

// MarshalJSON returns a tokenizer.json that Hugging Face's tokenizers library can
// load. The same tokenizer always gives the same bytes.
func (t *Tokenizer) MarshalJSON() ([]byte, error) {
	type object = map[string]any
	ids := make([]int32, 0, len(t.added))
	for _, id := range t.added {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	added := make([]documentAdded, len(ids))
	for i, id := range ids {
		added[i] = documentAdded{ID: id, Content: t.tokens[id], Special: t.special[id]}
	}
	merges := make([][2]string, len(t.order))
	inVocabulary := make([]bool, len(t.tokens))
	for i, m := range t.order {
		merges[i] = [2]string{spell(t.tokens[m.left]), spell(t.tokens[m.right])}
		inVocabulary[t.merges[m].into] = true
	}
	for _, id := range t.byteIDs {
		inVocabulary[id] = true
	}
	byteLevel := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}
	return marshal(struct {
		Version       string          `json:"version"`
		Truncation    any             `json:"truncation"`
		Padding       any             `json:"padding"`
		AddedTokens   []documentAdded `json:"added_tokens"`
		Normalizer    object          `json:"normalizer"`
		PreTokenizer  object          `json:"pre_tokenizer"`
		PostProcessor object          `json:"post_processor"`
		Decoder       object          `json:"decoder"`
		Model         any             `json:"model"`
	}{
		Version:     "1.0",
		AddedTokens: added,
		Normalizer:  object{"type": "NFC"},
		PreTokenizer: object{"type": "Sequence", "pretokenizers": []object{
			{"type": "Split", "pattern": object{"Regex": SplitPattern}, "behavior": "Isolated", "invert": false},
			byteLevel,
		}},
		PostProcessor: byteLevel,
		Decoder:       byteLevel,
		Model: struct {
			Type         string          `json:"type"`
			Dropout      any             `json:"dropout"`
			Unknown      any             `json:"unk_token"`
			Prefix       string          `json:"continuing_subword_prefix"`
			Suffix       string          `json:"end_of_word_suffix"`
			FuseUnknown  bool            `json:"fuse_unk"`
			ByteFallback bool            `json:"byte_fallback"`
			IgnoreMerges bool            `json:"ignore_merges"`
			Vocab        json.RawMessage `json:"vocab"`
			Merges       [][2]string     `json:"merges"`
		}{Type: "BPE", Vocab: t.vocabularyJSON(inVocabulary), Merges: merges},
	})
}

// vocabularyJSON returns the vocabulary of the BPE model in the order of ids. A map
// would have the order of names.
func (t *Tokenizer) vocabularyJSON(in []bool) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for id, token := range t.tokens {
		if !in[id] {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		key, _ := marshal(spell(token)) // the error of a string is always nil
		fmt.Fprintf(&b, "%s:%d", key, id)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// marshal is json.Marshal without the escapes of < and >.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
