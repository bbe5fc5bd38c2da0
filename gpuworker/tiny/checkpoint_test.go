package tiny

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codea1/gpuworker/tiny/qwen2"
)

func TestSaveLoadResume(t *testing.T) {
	e := newTestEngine(t, shape, 1)
	sequences := rollouts(t, e)
	if _, err := e.Update(t.Context(), sequences, ppo); err != nil {
		t.Fatal(err)
	}
	dir := save(t, e)
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []*Engine{e, again} {
		if _, err := o.Update(t.Context(), sequences, ppo); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(e.current.net.Weights.Data, again.current.net.Weights.Data) {
		t.Error("resumed weights differ")
	}
	if err := e.Save(t.Context(), dir); !errors.Is(err, os.ErrExist) {
		t.Errorf("saving over a checkpoint: error %v", err)
	}
}

func TestCorruptCheckpoints(t *testing.T) {
	good := newTestEngine(t, shape, 1)
	if _, err := good.Update(t.Context(), rollouts(t, good), ppo); err != nil {
		t.Fatal(err)
	}
	other := newTestEngine(t, qwen2.Config{
		Hidden: 32, Layers: 1, Heads: 4, KVHeads: 2, HeadSize: 8, MLP: 48, Positions: 256, RopeTheta: 1e4, NormEpsilon: 1e-6, TieEmbeddings: true,
	}, 1)
	otherDir := save(t, other)
	replace := func(name, old, new string) func(dir string) error {
		return func(dir string) error {
			path := filepath.Join(dir, name)
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if !strings.Contains(string(text), old) {
				return fmt.Errorf("%s lacks %q", name, old)
			}
			return os.WriteFile(path, []byte(strings.Replace(string(text), old, new, 1)), 0o644)
		}
	}
	for _, c := range []struct {
		name  string
		spoil func(dir string) error
		says  string
	}{
		{"no config", func(d string) error { return os.Remove(filepath.Join(d, configFile)) }, "config.json: no such file"},
		{"no weights", func(d string) error { return os.Remove(filepath.Join(d, weightsFile)) }, "model.safetensors: no such file"},
		{"no tokenizer", func(d string) error { return os.Remove(filepath.Join(d, tokenizerFile)) }, "tokenizer.json: no such file"},
		{"cut weights", func(d string) error { return os.Truncate(filepath.Join(d, weightsFile), 9000) }, "model.safetensors: corrupt safetensors file"},
		{"cut optimizer", func(d string) error { return os.Truncate(filepath.Join(d, optimizerFile), 9000) }, "optimizer.safetensors: corrupt"},
		{"renamed tensor", replace(weightsFile, "model.norm.weight", "model.moon.weight"), `model.safetensors: tensor "model.moon.weight" does not belong`},
		{"other layers", replace(configFile, `"num_hidden_layers": 2`, `"num_hidden_layers": 3`), `tensor "model.layers.2.`},
		{"other width", replace(configFile, `"intermediate_size": 48`, `"intermediate_size": 50`), "has the shape [48 32], the model needs [50 32]"},
		{"other model", replace(configFile, `"qwen2"`, `"llama"`), "config.json: unsupported model"},
		{"small vocabulary", replace(configFile, `"vocab_size": `, `"vocab_size": 1, "x": `), "tokens, but config.json a vocab_size of 1"},
		{"no end token", replace(tokenizerFile, "<|im_end|>", "<|im_eend|>"), "tokenizer.json has no <|im_end|>"},
		{"bad step", replace(optimizerFile, `"step":"1"`, `"step":"x"`), `optimizer.safetensors: bad step "x"`},
	} {
		dir := save(t, good)
		if err := c.spoil(dir); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		_, err := Open(dir)
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v", c.name, err)
		}
	}
	if err := good.Load(t.Context(), otherDir); !errors.Is(err, ErrMismatch) {
		t.Errorf("loading another model: error %v", err)
	}
}
