package qwen2

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrUnsupported is the error of a config.json that needs a feature that this
// package does not have.
var ErrUnsupported = errors.New("unsupported model")

// Limits of a configuration, so that a corrupt one cannot allocate all memory.
const (
	maxLayers     = 256
	maxWidth      = 1 << 17
	maxVocabulary = 1 << 20
	maxPositions  = 1 << 17
	maxParameters = 1 << 31
)

// Config is the shape of a model, named as in Hugging Face's config.json.
type Config struct {
	Vocabulary    int     // vocab_size; may exceed the tokenizer's
	Hidden        int     // hidden_size
	Layers        int     // num_hidden_layers
	Heads         int     // num_attention_heads
	KVHeads       int     // num_key_value_heads; divides Heads
	HeadSize      int     // head_dim; even
	MLP           int     // intermediate_size
	Positions     int     // max_position_embeddings
	RopeTheta     float64 // rope_theta
	NormEpsilon   float64 // rms_norm_eps
	TieEmbeddings bool    // tie_word_embeddings
	InitStd       float64 // initializer_range
	EndOfText     int32   // bos_token_id
	EndOfTurn     int32   // eos_token_id
}

// file is config.json.
type file struct {
	Architectures []string `json:"architectures"`
	ModelType     string   `json:"model_type"`
	Vocabulary    int      `json:"vocab_size"`
	Hidden        int      `json:"hidden_size"`
	MLP           int      `json:"intermediate_size"`
	Layers        int      `json:"num_hidden_layers"`
	Heads         int      `json:"num_attention_heads"`
	KVHeads       int      `json:"num_key_value_heads"`
	HeadSize      int      `json:"head_dim,omitempty"`
	Activation    string   `json:"hidden_act"`
	Positions     int      `json:"max_position_embeddings"`
	InitStd       float64  `json:"initializer_range"`
	NormEpsilon   float64  `json:"rms_norm_eps"`
	RopeTheta     float64  `json:"rope_theta,omitempty"`
	RopeScaling   any      `json:"rope_scaling"`
	// RopeParameters holds rope_theta in files of transformers 5.
	RopeParameters *struct {
		Theta float64 `json:"rope_theta"`
		Type  string  `json:"rope_type"`
	} `json:"rope_parameters,omitempty"`
	TieEmbeddings bool            `json:"tie_word_embeddings"`
	SlidingWindow bool            `json:"use_sliding_window"`
	Dropout       float64         `json:"attention_dropout"`
	BOS           *int32          `json:"bos_token_id"`
	EOS           json.RawMessage `json:"eos_token_id"`
	UseCache      bool            `json:"use_cache"`
	DType         string          `json:"torch_dtype"`
}

// ParseConfig reads a config.json. The error wraps ErrUnsupported if the file is
// valid but describes another architecture.
func ParseConfig(data []byte) (Config, error) {
	f := file{Activation: "silu", NormEpsilon: 1e-6, InitStd: 0.02, Positions: 32768}
	if err := json.Unmarshal(data, &f); err != nil {
		return Config{}, fmt.Errorf("not a config.json: %w", err)
	}
	if p := f.RopeParameters; p != nil {
		if p.Type != "" && p.Type != "default" {
			return Config{}, fmt.Errorf("%w: rope_type %q", ErrUnsupported, p.Type)
		}
		f.RopeTheta = p.Theta
	}
	switch {
	case f.ModelType != "qwen2":
		return Config{}, fmt.Errorf("%w: model_type %q, not qwen2", ErrUnsupported, f.ModelType)
	case f.Activation != "silu":
		return Config{}, fmt.Errorf("%w: hidden_act %q", ErrUnsupported, f.Activation)
	case f.RopeScaling != nil:
		return Config{}, fmt.Errorf("%w: rope_scaling", ErrUnsupported)
	case f.SlidingWindow:
		return Config{}, fmt.Errorf("%w: use_sliding_window", ErrUnsupported)
	}
	c := Config{
		Vocabulary: f.Vocabulary, Hidden: f.Hidden, Layers: f.Layers, Heads: f.Heads, KVHeads: f.KVHeads,
		HeadSize: f.HeadSize, MLP: f.MLP, Positions: f.Positions, RopeTheta: f.RopeTheta,
		NormEpsilon: f.NormEpsilon, TieEmbeddings: f.TieEmbeddings, InitStd: f.InitStd,
	}
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadSize == 0 && c.Heads > 0 {
		c.HeadSize = c.Hidden / c.Heads
	}
	if c.RopeTheta == 0 {
		c.RopeTheta = 10000
	}
	if f.BOS != nil {
		c.EndOfText = *f.BOS
	}
	var err error
	if c.EndOfTurn, err = firstID(f.EOS); err != nil {
		return Config{}, fmt.Errorf("eos_token_id: %w", err)
	}
	return c, c.Validate()
}

// firstID reads an id or the first id of a list; 0 if absent.
func firstID(raw json.RawMessage) (int32, error) {
	var id int32
	if len(raw) == 0 || json.Unmarshal(raw, &id) == nil {
		return id, nil
	}
	var ids []int32
	if err := json.Unmarshal(raw, &ids); err != nil || len(ids) == 0 {
		return 0, fmt.Errorf("%s is not a token id", raw)
	}
	return ids[0], nil
}

// Validate checks every limit that the computation relies on.
func (c Config) Validate() error {
	for _, field := range []struct {
		name       string
		value, max int
	}{
		{"vocab_size", c.Vocabulary, maxVocabulary},
		{"hidden_size", c.Hidden, maxWidth},
		{"num_hidden_layers", c.Layers, maxLayers},
		{"num_attention_heads", c.Heads, maxWidth},
		{"num_key_value_heads", c.KVHeads, maxWidth},
		{"head_dim", c.HeadSize, maxWidth},
		{"intermediate_size", c.MLP, maxWidth},
		{"max_position_embeddings", c.Positions, maxPositions},
	} {
		if field.value < 1 || field.value > field.max {
			return fmt.Errorf("%s is %d, outside 1 to %d", field.name, field.value, field.max)
		}
	}
	switch {
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("%d attention heads are not a multiple of %d key/value heads", c.Heads, c.KVHeads)
	case c.HeadSize%2 != 0:
		return fmt.Errorf("head_dim is %d, not even", c.HeadSize)
	case !(c.RopeTheta > 0) || !(c.NormEpsilon > 0) || !(c.InitStd >= 0):
		return fmt.Errorf("rope_theta %g, rms_norm_eps %g, initializer_range %g are not positive", c.RopeTheta, c.NormEpsilon, c.InitStd)
	case c.Heads*c.HeadSize > maxWidth:
		return fmt.Errorf("%d heads of %d are wider than %d", c.Heads, c.HeadSize, maxWidth)
	}
	perLayer := c.Hidden*(2*c.queryWidth()+2*c.kvWidth()+3*c.MLP) + c.qkvWidth() + 2*c.Hidden
	if n := c.Layers*perLayer + 2*c.Vocabulary*c.Hidden; n > maxParameters {
		return fmt.Errorf("%d parameters, at most %d", n, maxParameters)
	}
	return nil
}

// MarshalFile writes config.json as Qwen2ForCausalLM for weights stored as
// dtype, "float32" or "bfloat16".
func (c Config) MarshalFile(dtype string) ([]byte, error) {
	eos, err := json.Marshal(c.EndOfTurn)
	if err != nil {
		return nil, err
	}
	f := file{
		Architectures: []string{"Qwen2ForCausalLM"}, ModelType: "qwen2", Activation: "silu",
		Vocabulary: c.Vocabulary, Hidden: c.Hidden, MLP: c.MLP, Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads,
		Positions: c.Positions, InitStd: c.InitStd, NormEpsilon: c.NormEpsilon, RopeTheta: c.RopeTheta,
		TieEmbeddings: c.TieEmbeddings, BOS: &c.EndOfText, EOS: eos, UseCache: true, DType: dtype,
	}
	if c.HeadSize*c.Heads != c.Hidden {
		f.HeadSize = c.HeadSize
	}
	return json.MarshalIndent(f, "", "  ")
}

func (c Config) queryWidth() int { return c.Heads * c.HeadSize }
func (c Config) kvWidth() int    { return c.KVHeads * c.HeadSize }
func (c Config) qkvWidth() int   { return c.queryWidth() + 2*c.kvWidth() }

// grouped returns the number of query heads that share a key/value head.
func (c Config) grouped() int { return c.Heads / c.KVHeads }
