package tiny

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"codea1/gpuworker/tiny/qwen2"
	"codea1/gpuworker/tiny/safetensors"
	"codea1/gpuworker/tiny/tokenizer"
)

// Save implements gpuworker.Learner. It writes weights as float32, so that
// training continues from the same bits.
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

// Export writes the checkpoint without optimizer state into dir, which exists and
// is empty. It writes weights as dtype F32 or BF16.
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

// writeFile creates a new file and syncs the file and its directory.
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

// newFiles makes the files of a checkpoint, except weights and config.json, for a
// tokenizer.
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

// marshalIndent does not escape < and >, which special tokens contain.
func marshalIndent(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}
