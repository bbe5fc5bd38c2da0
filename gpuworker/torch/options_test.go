package torch

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codea1/gpuworker"
)

// TestOptionsReachTheChild trains with an adapter, and starts children with values
// that the Python side must refuse by name.
func TestOptionsReachTheChild(t *testing.T) {
	path, start := python(t), small(t)
	for _, wrong := range []Options{{OptimizerState: "disk"}, {Reference: "disk"}, {LoRARank: 1, LoRAAlpha: 1, LoRATargets: []string{"disk"}}} {
		wrong.Python, wrong.Device, wrong.Dir = path, "cpu", start
		e, err := Start(t.Context(), wrong)
		if !errors.Is(err, ErrBadRequest) || !strings.Contains(err.Error(), "disk") {
			t.Errorf("%+v: %v", wrong, err)
		}
		if err == nil {
			_ = e.Close()
		}
	}

	e := open(t, Options{Dir: start, OptimizerState: "8bit", Reference: "cpu", LoRARank: 3, LoRAAlpha: 6, LoRATargets: []string{"v_proj", "up_proj"}})
	if err := errors.Join(e.Load(t.Context(), start), e.LoadReference(t.Context(), start)); err != nil {
		t.Fatal(err)
	}
	batch := []gpuworker.Sequence{{Prompt: []int32{1, 2}, Tokens: []int32{3, 4, 5}}}
	if _, err := e.Update(t.Context(), batch, gpuworker.UpdateConfig{
		Loss: gpuworker.LossSFT, LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8,
	}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := e.Save(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "adapter", "adapter_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Rank  int     `json:"r"`
		Alpha float64 `json:"lora_alpha"`
	}
	if err := json.Unmarshal(text, &config); err != nil || config.Rank != 3 || config.Alpha != 6 {
		t.Errorf("the adapter of the checkpoint: %+v, %v", config, err)
	}
	before, after := weights(t, start), weights(t, dir)
	for name := range before {
		moved := false
		for i := range before[name] {
			moved = moved || before[name][i] != after[name][i]
		}
		if want := strings.Contains(name, "v_proj.weight") || strings.Contains(name, "up_proj"); moved != want {
			t.Errorf("%s: changed %v, want %v", name, moved, want)
		}
	}
}

// TestVLLMIsRefusedByName checks that the options of vLLM reach the child, and that the
// error names the remedy. No machine of the tests has both vLLM and a GPU.
func TestVLLMIsRefusedByName(t *testing.T) {
	options := Options{Python: python(t), Device: "cpu", Dir: small(t), VLLM: &VLLM{Memory: 0.5, TensorParallel: 2, DataParallel: 1}}
	for _, c := range []struct {
		memory float64
		want   string
	}{{1.5, "share of the GPU memory is 1.5"}, {0.5, "--sampler"}} {
		options.VLLM.Memory = c.memory
		e, err := Start(t.Context(), options)
		if !errors.Is(err, ErrBadRequest) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("memory %g: %v", c.memory, err)
		}
		if err == nil {
			_ = e.Close()
		}
	}
}
