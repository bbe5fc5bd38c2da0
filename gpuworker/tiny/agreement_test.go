package tiny

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"codea1/gpuworker"
	"codea1/gpuworker/tiny/kernel"
	"codea1/gpuworker/tiny/qwen2"
)

// thorough repeats tests with more inputs.
var thorough = os.Getenv("CODEA1_TEST_THOROUGH") == "1"

// tolerance of a log-prob, in nats.
const tolerance = 1e-4

// expected returns the log-probs of the response tokens in float64.
func (m *float64Model) expected(sequences []gpuworker.Sequence, temperature float64) (out [][]float64) {
	for _, s := range sequences {
		out = append(out, m.logProbs(slices.Concat(s.Prompt, s.Tokens), temperature)[len(s.Prompt)-1:])
	}
	return out
}

// agree compares the engine's log-probs with want and returns the largest
// difference.
func agree(t *testing.T, e *Engine, sequences []gpuworker.Sequence, temperature float64, want [][]float64) (worst float64) {
	t.Helper()
	got, err := e.LogProbs(t.Context(), gpuworker.Current, sequences, temperature)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		for j, w := range want[i] {
			off := math.Abs(float64(got[i][j]) - w)
			if !(off <= tolerance) {
				t.Errorf("sequence %d, token %d: log-prob %.7f, in float64 %.7f", i, j, got[i][j], w)
			}
			worst = max(worst, off)
		}
	}
	return worst
}

// onEachPath runs f on every kernel path of this machine.
func onEachPath(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	before := kernel.Name()
	t.Cleanup(func() { useKernel(t, before) })
	for _, name := range kernel.Names() {
		useKernel(t, name)
		t.Run(name, f)
	}
}

func useKernel(t *testing.T, name string) {
	t.Helper()
	if err := kernel.Use(name); err != nil {
		t.Fatal(err)
	}
}

// asked has prompts of the embedded models' training and a response to each.
var asked = map[string][][2]string{
	"code": {
		{"Return the index of the first number in xs of at least 7, or -1 if there is none.",
			"```python\ndef solve(xs):\n    for i, x in enumerate(xs):\n        if x >= 7:\n            return i\n    return -1\n```"},
		{"Return the non-digits of s, each 2 times.",
			"```python\ndef solve(s):\n    return ''.join(c * 3 for c in s if not c.isdigit())\n```"},
	},
	"test": {
		{"Return the non-digits of s, each 2 times.\n```python\ndef solve(s):\n    return ''.join(c * 3 for c in s if not c.isdigit())\n```",
			"```python\nassert solve('') == ''\nassert solve(' Oia') == '  OOiiaa'\nassert solve('') == 'a'\n```"},
		{"Return s with every non-letter replaced by '*', and reversed.\n```python\ndef solve(s):\n    return ''.join('*' if not c.isalpha() else c for c in s[:-1])[::-1]\n```",
			"```python\nassert solve('') == ''\nassert solve('3dt') == 'td*'\n```"},
	},
}

// TestShippedCheckpointsAgreeWithFloat64 compares the log-probs of given and of
// sampled responses.
func TestShippedCheckpointsAgreeWithFloat64(t *testing.T) {
	if raceEnabled {
		t.Skip("the reference takes its time under the race detector, and runs on one goroutine")
	}
	for _, role := range slices.Sorted(maps.Keys(asked)) {
		t.Run(role, func(t *testing.T) {
			fsys, err := Checkpoint(role)
			if err != nil {
				t.Fatal(err)
			}
			e, err := OpenFS(fsys)
			if err != nil {
				t.Fatal(err)
			}
			var sequences []gpuworker.Sequence
			var requests []gpuworker.SampleRequest
			pairs := asked[role]
			if !thorough {
				pairs = pairs[:1]
			}
			for i, pair := range pairs {
				ids, err := e.EncodePrompt([]gpuworker.Message{{Role: "user", Content: pair[0]}})
				if err != nil {
					t.Fatal(err)
				}
				sequences = append(sequences, gpuworker.Sequence{Prompt: ids, Tokens: e.EncodeResponse(pair[1])})
				requests = append(requests, gpuworker.SampleRequest{Prompt: ids, Seeds: []uint64{uint64(i)}})
			}
			for i, row := range sample(t, e, requests, gpuworker.SamplingParams{Temperature: 1, TopP: 1, MaxTokens: 96}) {
				sequences = append(sequences, gpuworker.Sequence{Prompt: requests[i].Prompt, Tokens: row[0].Tokens})
			}
			want := readFloat64(t, fsys).expected(sequences, 1)
			onEachPath(t, func(t *testing.T) {
				t.Logf("largest difference %.1e", agree(t, e, sequences, 1, want))
			})
		})
	}
}

// TestOpensAnyQwen2 opens checkpoints in the forms of other programs: every dtype,
// one file or shards, tied or separate embeddings. The small model has 14 heads
// over 2 key/value heads, as Qwen2.5-0.5B.
func TestOpensAnyQwen2(t *testing.T) {
	for i, dtype := range []string{"F32", "F16", "BF16"} {
		for _, shards := range []int{1, 3} {
			for _, tied := range []bool{true, false} {
				// Half of the combinations have every pair of two properties.
				if !thorough && tied != ((i+shards/2)%2 == 0) {
					continue
				}
				t.Run(fmt.Sprintf("%s, %d files, tied %v", dtype, shards, tied), func(t *testing.T) {
					fsys := foreignCheckpoint(t, dtype, shards, tied)
					e, err := OpenFS(fsys)
					if err != nil {
						t.Fatal(err)
					}
					r := prompts(t, e)
					var sequences []gpuworker.Sequence
					for i, row := range sample(t, e, r, freely) {
						sequences = append(sequences, gpuworker.Sequence{Prompt: r[i].Prompt, Tokens: row[0].Tokens})
					}
					agree(t, e, sequences, 0.8, readFloat64(t, fsys).expected(sequences, 0.8))
				})
			}
		}
	}
}

// foreignCheckpoint returns a checkpoint of numbers that every dtype holds exactly.
func foreignCheckpoint(t *testing.T, dtype string, shards int, tied bool) fs.FS {
	t.Helper()
	tok := corpusTokenizer(t)
	text, err := tok.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{
		"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 366, "eos_token_id": [368, 366],
		"hidden_act": "silu", "hidden_size": 56, "initializer_range": 0.02, "intermediate_size": 76, "max_position_embeddings": 512,
		"max_window_layers": 2, "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 2, "num_key_value_heads": 2,
		"rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 512, "tie_word_embeddings": %v,
		"torch_dtype": "bfloat16", "transformers_version": "4.43.1", "use_cache": true, "use_sliding_window": false, "vocab_size": %d
	}`, tied, tok.Size()+7)
	parsed, err := qwen2.ParseConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	files := fstest.MapFS{"config.json": {Data: []byte(config)}, "tokenizer.json": {Data: text}}
	parts, index := make([]shardFile, shards), map[string]string{}
	for i, tensor := range qwen2.NewWeights(parsed).Tensors {
		part := i % shards
		name := "model.safetensors"
		if shards > 1 {
			name = fmt.Sprintf("model-%05d-of-%05d.safetensors", part+1, shards)
		}
		parts[part].name, index[tensor.Name] = name, name
		parts[part].add(tensor, dtype, rng)
	}
	for _, part := range parts {
		files[part.name] = &fstest.MapFile{Data: part.bytes(t)}
	}
	if shards > 1 {
		text, err := json.Marshal(map[string]any{"metadata": map[string]int{"total_size": 1}, "weight_map": index})
		if err != nil {
			t.Fatal(err)
		}
		files["model.safetensors.index.json"] = &fstest.MapFile{Data: text}
	}
	return files
}

// shardFile builds a safetensors file.
type shardFile struct {
	name   string
	header map[string]any
	data   []byte
}

// add appends a tensor: k/256 for matrices, 1+k/128 for norms, with k below 128.
func (s *shardFile) add(tensor qwen2.Tensor, dtype string, rng *rand.Rand) {
	begin := len(s.data)
	for range tensor.Data {
		x := float32(rng.IntN(255)-127) / 256
		if !tensor.Matrix() {
			x = 1 + float32(rng.IntN(64))/128
		}
		bits := math.Float32bits(x)
		switch dtype {
		case "F32":
			s.data = binary.LittleEndian.AppendUint32(s.data, bits)
		case "BF16":
			s.data = binary.LittleEndian.AppendUint16(s.data, uint16(bits>>16))
		case "F16":
			half := uint16(bits >> 16 & 0x8000)
			if x != 0 {
				half |= uint16((bits>>23&255)-127+15)<<10 | uint16(bits>>13&1023)
			}
			s.data = binary.LittleEndian.AppendUint16(s.data, half)
		}
	}
	if s.header == nil {
		s.header = map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	}
	s.header[tensor.Name] = map[string]any{"dtype": dtype, "shape": tensor.Shape, "data_offsets": [2]int{begin, len(s.data)}}
}

func (s *shardFile) bytes(t *testing.T) []byte {
	t.Helper()
	header, err := json.Marshal(s.header)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header, s.data)
}
