package tiny

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"codea1/gpuworker"
	"codea1/gpuworker/tiny/qwen2"
)

// heapGrowth returns the bytes that do allocates. Nothing is collected meanwhile.
func heapGrowth(do func()) uint64 {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// The memory that is worked out from config.json is that which the engine takes.
func TestDemandIsTheMemoryOfAnEngine(t *testing.T) {
	const threads = 2
	work := Work{Prompts: 8, Samples: 4, Trained: 32, Tokens: 100, Reference: true}
	dir := save(t, newTestEngine(t, defaultShape, 1))
	var sequences []gpuworker.Sequence
	for i := range work.Prompts * work.Samples {
		prompt, tokens := make([]int32, 100), make([]int32, work.Tokens)
		for j := range tokens {
			prompt[j], tokens[j] = int32(i/work.Samples), int32(j)
		}
		sequences = append(sequences, gpuworker.Sequence{Prompt: prompt, Tokens: tokens, Advantage: 1})
	}
	demand, err := ReadDemand(dir, work)
	if err != nil {
		t.Fatal(err)
	}
	var e *Engine
	open := func() {
		if e, err = Open(dir); err != nil {
			t.Fatal(err)
		}
		e.threads = threads
	}
	demand = NewDemand(func() qwen2.Config { open(); return e.Config() }(), work, threads)
	if demand.Parameters != e.Parameters() {
		t.Errorf("%d parameters, want %d", demand.Parameters, e.Parameters())
	}
	training := heapGrowth(func() {
		open()
		if err := e.LoadReference(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		if _, err := e.LogProbs(t.Context(), gpuworker.Reference, sequences, 1); err != nil {
			t.Fatal(err)
		}
		sft := ppo
		sft.Loss = gpuworker.LossSFT
		if _, err := e.Update(t.Context(), sequences, sft); err != nil {
			t.Fatal(err)
		}
	})
	sampling := heapGrowth(func() {
		open()
		e.chat.turnEnd, e.chat.endOfText = -1, -1 // no sequence ends
		var requests []gpuworker.SampleRequest
		for i := range work.Prompts {
			requests = append(requests, gpuworker.SampleRequest{Prompt: sequences[i*work.Samples].Prompt, Seeds: []uint64{1, 2, 3, 4}})
		}
		if _, err := e.Sample(t.Context(), requests, gpuworker.SamplingParams{Temperature: 1, TopP: 1, MaxTokens: work.Tokens}); err != nil {
			t.Fatal(err)
		}
		if err := e.LoadWeights(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	})
	for what, pair := range map[string][2]uint64{"training": {demand.Training, training}, "sampling": {demand.Sampling, sampling}} {
		t.Logf("%s: %d bytes worked out, %d allocated", what, pair[0], pair[1])
		if share := float64(pair[0]) / float64(pair[1]); share < 0.7 || share > 2 {
			t.Errorf("%s: %d bytes worked out, %d allocated", what, pair[0], pair[1])
		}
	}
	if demand.Step <= 0 {
		t.Errorf("a step takes %v", demand.Step)
	}
}

// A model of billions of parameters is described without being loaded, and the work
// makes a difference.
func TestDemandOfLargeModels(t *testing.T) {
	dir := t.TempDir()
	config, err := qwen2.Config{
		Vocabulary: 151936, Hidden: 896, Layers: 24, Heads: 14, KVHeads: 2, HeadSize: 64, MLP: 4864, Positions: 32768,
		RopeTheta: 1e6, NormEpsilon: 1e-6, TieEmbeddings: true, InitStd: 0.02,
	}.MarshalFile("bfloat16")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, configFile), config, 0o600); err != nil {
		t.Fatal(err)
	}
	short := Work{Prompts: 16, Samples: 4, Trained: 64, Tokens: 72}
	small, err := ReadDemand(dir, short)
	if err != nil || small.Parameters != 494_032_768 || small.Training < 8<<30 || !strings.HasPrefix(small.String(), "494.0 million parameters, about ") {
		t.Fatalf("%v, %v", small, err)
	}
	for what, more := range map[string]func(*Work){
		"longer":    func(w *Work) { w.Tokens *= 20 },
		"reference": func(w *Work) { w.Reference = true },
		"more":      func(w *Work) { w.Prompts, w.Trained = 20*w.Prompts, 20*w.Trained },
	} {
		work := short
		more(&work)
		large, err := ReadDemand(dir, work)
		if err != nil || large.Training < small.Training || large.Sampling < small.Sampling || large.operations <= small.operations {
			t.Errorf("%s: %v, and %v before, %v", what, large, small, err)
		}
	}
	for name, text := range map[string]string{"none": "", "no JSON": "{", "other": `{"model_type":"llama"}`, "huge": strings.Replace(string(config), "151936", "99999999", 1)} {
		path := filepath.Join(dir, configFile)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadDemand(dir, short); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("checkpoint %s: %s: ", dir, configFile)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
