package tiny

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"codea1/gpuworker/tiny/qwen2"
	"codea1/gpuworker/tiny/safetensors"
	"codea1/gpuworker/tiny/tokenizer"
)

// The files of a checkpoint directory.
const (
	configFile     = "config.json"
	tokenizerFile  = "tokenizer.json"
	weightsFile    = "model.safetensors"
	optimizerFile  = "optimizer.safetensors"
	tokenizerSetup = "tokenizer_config.json"
	generationFile = "generation_config.json"
)

// carriedNames are the files that pass from a checkpoint to those saved from it
// as they are. All but the tokenizer may be missing.
var carriedNames = []string{
	tokenizerFile, tokenizerSetup, generationFile, "chat_template.jinja", "special_tokens_map.json", "vocab.json", "merges.txt",
}

// maxTextBytes bounds a checkpoint's JSON files.
const maxTextBytes = 64 << 20

// carried holds the contents of carriedNames.
type carried map[string][]byte

// checkpoint is a directory read.
type checkpoint struct {
	files     carried
	tokenizer *tokenizer.Tokenizer
	weights   *qwen2.Weights
	optimizer *optimizer // nil when the directory has none
}

func readCheckpoint(fsys fs.FS, withOptimizer bool) (*checkpoint, error) {
	text, err := readText(fsys, configFile)
	if err != nil {
		return nil, err
	}
	config, err := qwen2.ParseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", configFile, err)
	}
	c := &checkpoint{files: make(carried)}
	for _, name := range carriedNames {
		text, err := readText(fsys, name)
		if errors.Is(err, fs.ErrNotExist) && name != tokenizerFile {
			continue
		}
		if err != nil {
			return nil, err
		}
		c.files[name] = text
	}
	if c.tokenizer, err = tokenizer.Parse(c.files[tokenizerFile]); err != nil {
		return nil, fmt.Errorf("%s: %w", tokenizerFile, err)
	}
	if c.tokenizer.Size() > config.Vocabulary {
		return nil, fmt.Errorf("%s has %d tokens, but %s a vocab_size of %d", tokenizerFile, c.tokenizer.Size(), configFile, config.Vocabulary)
	}
	if c.weights, err = readWeights(fsys, config); err != nil {
		return nil, err
	}
	if withOptimizer {
		c.optimizer, err = readOptimizer(fsys, config)
	}
	return c, err
}

func readText(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxTextBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > maxTextBytes {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxTextBytes)
	}
	return text, nil
}

// collector fills the tensors of weights by name and knows which are missing.
type collector map[string]qwen2.Tensor

func (c collector) add(prefix string, w *qwen2.Weights) {
	for _, t := range w.Tensors {
		c[prefix+t.Name] = t
	}
}

func (c collector) take(t safetensors.Tensor) ([]float32, error) {
	want, ok := c[t.Name]
	if !ok {
		return nil, fmt.Errorf("tensor %q does not belong to the model, or is there twice", t.Name)
	}
	if fmt.Sprint(t.Shape) != fmt.Sprint(want.Shape) {
		return nil, fmt.Errorf("tensor %q has the shape %v, the model needs %v", t.Name, t.Shape, want.Shape)
	}
	delete(c, t.Name)
	return want.Data, nil
}

func (c collector) missing() error {
	for name := range c {
		return fmt.Errorf("tensor %q is missing (%d in all)", name, len(c))
	}
	return nil
}

func readWeights(fsys fs.FS, config qwen2.Config) (*qwen2.Weights, error) {
	w := qwen2.NewWeights(config)
	rest := make(collector)
	rest.add("", w)
	err := safetensors.ReadModel(fsys, func(t safetensors.Tensor) ([]float32, error) {
		if t.Name == "lm_head.weight" && config.TieEmbeddings {
			return nil, nil // some writers repeat the tied embeddings
		}
		return rest.take(t)
	})
	if err == nil {
		err = rest.missing()
	}
	if err != nil {
		return nil, err
	}
	for _, t := range w.Tensors {
		for _, v := range t.Data {
			if v-v != 0 {
				return nil, fmt.Errorf("tensor %q holds %g", t.Name, v)
			}
		}
	}
	return w, nil
}

// readOptimizer returns nil without an error when there is no state.
func readOptimizer(fsys fs.FS, config qwen2.Config) (*optimizer, error) {
	o := newOptimizer(config)
	rest := make(collector)
	rest.add("m.", o.mean)
	rest.add("v.", o.variance)
	h, err := safetensors.ReadFile(fsys, optimizerFile, rest.take)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = rest.missing()
	}
	if err != nil {
		return nil, err
	}
	o.step, err = strconv.Atoi(h.Metadata["step"])
	if err != nil || o.step < 0 || o.step > math.MaxInt32 {
		return nil, fmt.Errorf("%s: bad step %q", optimizerFile, h.Metadata["step"])
	}
	return o, nil
}

// Save implements gpuworker.Learner. Weights are float32, so that training goes
// on from the very same bits.
func (e *Engine) Save(ctx context.Context, dir string) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if err := e.export(ctx, dir, safetensors.F32); err != nil {
		return err
	}
	if e.optimizer == nil {
		return nil
	}
	var tensors []safetensors.Values
	tensors = appendValues(tensors, "m.", e.optimizer.mean)
	tensors = appendValues(tensors, "v.", e.optimizer.variance)
	return writeFile(dir, optimizerFile, func(w io.Writer) error {
		return safetensors.Write(w, tensors, safetensors.F32, map[string]string{"step": strconv.Itoa(e.optimizer.step)})
	})
}

// Export writes the checkpoint without optimizer state, weights as dtype F32 or
// BF16, into dir, which exists and is empty.
func (e *Engine) Export(ctx context.Context, dir string, dtype safetensors.DType) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.export(ctx, dir, dtype)
}

func (e *Engine) export(ctx context.Context, dir string, dtype safetensors.DType) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	weights := e.current.net.Weights
	torchType := "float32"
	if dtype == safetensors.BF16 {
		torchType = "bfloat16"
	}
	config, err := weights.Config.MarshalFile(torchType)
	if err != nil {
		return err
	}
	for name, text := range e.files {
		if err := writeText(dir, name, text); err != nil {
			return err
		}
	}
	if err := writeText(dir, configFile, config); err != nil {
		return err
	}
	return writeFile(dir, weightsFile, func(w io.Writer) error {
		return safetensors.Write(w, appendValues(nil, "", weights), dtype, nil)
	})
}

func appendValues(to []safetensors.Values, prefix string, w *qwen2.Weights) []safetensors.Values {
	for _, t := range w.Tensors {
		to = append(to, safetensors.Values{Name: prefix + t.Name, Shape: t.Shape, Data: t.Data})
	}
	return to
}

func writeText(dir, name string, text []byte) error {
	return writeFile(dir, name, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// writeFile creates a file, which must not exist, and syncs it and its entry.
func writeFile(dir, name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Sync(), f.Close())
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// newFiles makes what a checkpoint carries beside its weights, for a tokenizer
// made here.
func newFiles(t *tokenizer.Tokenizer, format chat, positions int) (carried, error) {
	text, err := t.MarshalJSON()
	if err != nil {
		return nil, err
	}
	setup, err := marshalIndent(map[string]any{
		"tokenizer_class":              "PreTrainedTokenizerFast",
		"model_max_length":             positions,
		"bos_token":                    nil,
		"unk_token":                    nil,
		"pad_token":                    tokenizer.EndOfText,
		"eos_token":                    tokenizer.TurnEnd,
		"additional_special_tokens":    []string{tokenizer.TurnStart, tokenizer.TurnEnd},
		"clean_up_tokenization_spaces": false,
		"chat_template":                chatTemplate,
	})
	if err != nil {
		return nil, err
	}
	generation, err := marshalIndent(map[string]any{
		"bos_token_id": format.endOfText,
		"pad_token_id": format.endOfText,
		"eos_token_id": []int32{format.turnEnd, format.endOfText},
		"do_sample":    true,
		"temperature":  1.0,
	})
	if err != nil {
		return nil, err
	}
	return carried{tokenizerFile: text, tokenizerSetup: setup, generationFile: generation}, nil
}

// marshalIndent leaves < and > readable: special tokens are full of them.
func marshalIndent(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}
