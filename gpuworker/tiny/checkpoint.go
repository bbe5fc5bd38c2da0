package tiny

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strconv"

	"codea1/events/files"
	"codea1/gpuworker/tiny/qwen2"
	"codea1/gpuworker/tiny/safetensors"
	"codea1/gpuworker/tiny/tokenizer"
)

// The files of a checkpoint directory.
const (
	configFile     = "config.json"
	tokenizerFile  = "tokenizer.json"
	weightsFile    = safetensors.ModelFile
	optimizerFile  = "optimizer.safetensors"
	tokenizerSetup = "tokenizer_config.json"
	generationFile = "generation_config.json"
)

// carriedNames are the files that Save copies unchanged from the checkpoint that
// was opened. All except the tokenizer are optional.
var carriedNames = []string{
	tokenizerFile, tokenizerSetup, generationFile, "chat_template.jinja", "special_tokens_map.json", "vocab.json", "merges.txt",
}

// maxTextBytes limits the size of a checkpoint's JSON files.
const maxTextBytes = 64 << 20

// carried holds the contents of carriedNames.
type carried map[string][]byte

// contents is a checkpoint directory in memory.
type contents struct {
	files     carried
	tokenizer *tokenizer.Tokenizer
	weights   *qwen2.Weights
	optimizer *optimizer // nil if the directory has none
}

func readCheckpoint(fsys fs.FS, withOptimizer bool) (*contents, error) {
	text, err := readText(fsys, configFile)
	if err != nil {
		return nil, err
	}
	config, err := qwen2.ParseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", configFile, err)
	}
	c := &contents{files: make(carried)}
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
	f, err := files.OpenFS(fsys, name)
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

// collector maps names to the tensors that a file has not filled yet.
type collector map[string]qwen2.Tensor

func (c collector) add(prefix string, w *qwen2.Weights) {
	for _, t := range w.Tensors {
		c[prefix+t.Name] = t
	}
}

func (c collector) take(t safetensors.Tensor) ([]float32, error) {
	want, ok := c[t.Name]
	if !ok {
		return nil, fmt.Errorf("tensor %q does not belong to the model, or occurs twice", t.Name)
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
			return nil, nil // some programs write the tied embeddings twice
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

// readOptimizer returns nil without an error if there is no optimizer state.
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
