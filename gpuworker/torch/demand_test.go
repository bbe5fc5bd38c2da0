package torch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codea1/events/machine"
)

// The numbers of parameters are those that the models are published with. The memory
// follows the placement of its parts.
func TestDemandOfPublishedModels(t *testing.T) {
	dir := t.TempDir()
	config := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]uint64{
		`{"architectures":["Qwen2ForCausalLM"],"hidden_size":896,"num_hidden_layers":24,"num_attention_heads":14,"num_key_value_heads":2,
		  "intermediate_size":4864,"vocab_size":151936,"tie_word_embeddings":true}`: 494_032_768,
		`{"architectures":["Qwen3ForCausalLM"],"hidden_size":1024,"num_hidden_layers":28,"num_attention_heads":16,"num_key_value_heads":8,
		  "head_dim":128,"intermediate_size":3072,"vocab_size":151936,"tie_word_embeddings":true}`: 596_049_920,
		`{"architectures":["LlamaForCausalLM"],"hidden_size":2048,"num_hidden_layers":16,"num_attention_heads":32,"num_key_value_heads":8,
		  "head_dim":64,"intermediate_size":8192,"vocab_size":128256,"tie_word_embeddings":true}`: 1_235_814_400,
		`{"architectures":["Qwen2ForCausalLM"],"hidden_size":1536,"num_hidden_layers":28,"num_attention_heads":12,"num_key_value_heads":2,
		  "intermediate_size":8960,"vocab_size":151936,"tie_word_embeddings":true}`: 1_543_714_304,
	} {
		config(text)
		if d, err := ReadDemand(dir, Work{}); err != nil || d.Parameters != want {
			t.Errorf("%d parameters, want %d, %v", d.Parameters, want, err)
		}
	}
	config(`{"architectures":["LlamaForCausalLM"],"hidden_size":1000,"num_hidden_layers":1,"num_attention_heads":10,"intermediate_size":1000,"vocab_size":10000}`)
	for _, c := range []struct {
		work           Work
		gpu, host, cpu uint64 // bytes of a parameter
	}{
		{Work{}, 2, 0, 4},
		{Work{Trains: true}, 20, 0, 20},
		{Work{Trains: true, OptimizerState: "cpu"}, 8, 12, 20},
		{Work{Trains: true, OptimizerState: "8bit"}, 14, 0, 14},
		{Work{Trains: true, Reference: true}, 22, 0, 24},
		{Work{Trains: true, Reference: true, ReferenceOn: "cpu"}, 20, 2, 24},
		{Work{Trains: true, Adapter: true}, 4, 0, 8},
		{Work{Trains: true, GPUs: 2}, 11, 0, 20},
		{Work{Trains: true, Reference: true, GPUs: 4}, 7, 0, 24},
		{Work{Trains: true, OptimizerState: "cpu", GPUs: 2}, 7, 8, 20},
		{Work{Trains: true, Adapter: true, GPUs: 2}, 4, 0, 8},
		{Work{GPUs: 2}, 2, 0, 4},
		{Work{Trains: true, Adapter: true, Reference: true, ReferenceOn: "cpu"}, 2, 2, 8},
	} {
		d, err := ReadDemand(dir, c.work)
		n := d.Parameters
		if err != nil || d.OnGPU != n*c.gpu+contextBytes || d.BesideGPU != n*c.host || d.OnCPU != n*c.cpu {
			t.Errorf("%+v: %+v, %v", c.work, d, err)
		}
	}
	both, err := ReadDemand(dir, Work{Samples: true, VLLMMemory: 0.25})
	if both = both.Add(both); err != nil || both.GPUShare != 0.5 || both.OnGPU != 2*(2*both.Parameters/2+contextBytes) {
		t.Errorf("two models that vLLM samples from: %+v, %v", both, err)
	}
	d, err := ReadDemand(dir, Work{Samples: true, Tokens: 744, Together: 64})
	if want := uint64(2 * 1000 * 2 * 1000 * 64); err != nil || d.Cache != want {
		t.Errorf("%d bytes of cache, want %d, %v", d.Cache, want, err)
	}
	for _, text := range []string{"", "[]", "{}", `{"hidden_size":-1}`, `{"hidden_size":99999999999}`} {
		config(text)
		if _, err := ReadDemand(dir, Work{}); err == nil || !strings.Contains(err.Error(), "config.json: ") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The parameters are those that the Python side counts. A model that needs more memory
// than the device has is refused before its weights are read, with a remedy.
func TestModelThatDoesNotFit(t *testing.T) {
	interpreter := python(t)
	dir := small(t)
	demand, err := ReadDemand(dir, Work{Samples: true, Trains: true, Tokens: 100})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	e := open(t, Options{Dir: dir, Needs: demand, Logger: logTo(&log)})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf(" parameters=%d ", demand.Parameters); !strings.Contains(log.String(), want) {
		t.Errorf("no %q in %s", want, log.String())
	}
	if available, known := machine.AvailableMemory(os.DirFS("/")); !known || available > 1<<50 {
		t.Skipf("%d bytes are available, known: %v", available, known)
	}
	demand.OnCPU = 1 << 60
	if err := os.Remove(filepath.Join(dir, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), Options{Python: interpreter, Device: "cpu", Dir: dir, Needs: demand})
	if !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), "need at least 1073741824.0 GiB of main memory") || !strings.Contains(err.Error(), "--optimizer-state") {
		t.Error(err)
	}
}
