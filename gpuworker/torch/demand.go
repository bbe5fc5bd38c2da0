package torch

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"codea1/events/machine"
)

// Work is the work of an engine on its model.
type Work struct {
	Samples, Trains bool
	Tokens          int     // of the longest completion
	Together        int     // completions that are sampled together
	Reference       bool    // training compares with a reference policy
	ReferenceOn     string  // as Options.Reference
	OptimizerState  string  // as Options.OptimizerState
	GPUs            int     // that train together; 0 is 1
	VLLMMemory      float64 // share of a GPU that vLLM samples with; 0: the builtin sampler
	Adapter         bool    // only an adapter is trained; the base, which is the reference, is kept beside the merged weights
}

// Demand is the least memory that a model needs in bytes, with the smallest batches. It
// follows from config.json alone.
type Demand struct {
	Parameters uint64
	OnGPU      uint64  // of a GPU, with weights in bfloat16
	GPUShare   float64 // of the whole memory of a GPU, beside OnGPU
	BesideGPU  uint64  // of main memory, then
	OnCPU      uint64  // of main memory without a GPU, with weights in float32
	Cache      uint64  // of a GPU for the keys and values of all completions at once
}

// Add returns the demand of two models in one process.
func (d Demand) Add(other Demand) Demand {
	return Demand{
		Parameters: d.Parameters + other.Parameters, OnGPU: d.OnGPU + other.OnGPU, BesideGPU: d.BesideGPU + other.BesideGPU,
		OnCPU: d.OnCPU + other.OnCPU, Cache: d.Cache + other.Cache, GPUShare: d.GPUShare + other.GPUShare,
	}
}

// String describes the demand.
func (d Demand) String() string {
	return fmt.Sprintf("%.1f million parameters, at least %s of GPU memory, and %s for the keys and values of all completions; on the CPU %s",
		float64(d.Parameters)/1e6, machine.Bytes(d.OnGPU), machine.Bytes(d.Cache), machine.Bytes(d.OnCPU))
}

const (
	contextBytes = 512 << 20 // of CUDA in a process
	promptTokens = 256       // assumed; config.json does not give their length
	wideBytes    = 4         // of a float32
	momentBytes  = 8         // of AdamW for a weight, in float32
	maxConfig    = 1 << 20   // bytes of config.json
	maxDimension = 1 << 24
)

// shapeFile is the part of config.json that the memory follows from.
type shapeFile struct {
	Architectures []string `json:"architectures"`
	Hidden        int      `json:"hidden_size"`
	Layers        int      `json:"num_hidden_layers"`
	Heads         int      `json:"num_attention_heads"`
	KVHeads       int      `json:"num_key_value_heads"`
	HeadSize      int      `json:"head_dim"`
	MLP           int      `json:"intermediate_size"`
	Vocabulary    int      `json:"vocab_size"`
	Tied          bool     `json:"tie_word_embeddings"`
	Bias          bool     `json:"attention_bias"`
}

// ReadDemand returns the demand of the model in a checkpoint directory.
func ReadDemand(dir string, work Work) (Demand, error) {
	path := filepath.Join(dir, "config.json")
	info, err := os.Stat(path)
	if err != nil {
		return Demand{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxConfig {
		return Demand{}, fmt.Errorf("%s: want a regular file of at most %d bytes", path, maxConfig)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Demand{}, err
	}
	var s shapeFile
	if err := json.Unmarshal(text, &s); err != nil {
		return Demand{}, fmt.Errorf("%s: %w", path, err)
	}
	if s.KVHeads == 0 {
		s.KVHeads = s.Heads
	}
	if s.HeadSize == 0 && s.Heads > 0 {
		s.HeadSize = s.Hidden / s.Heads
	}
	for _, n := range []int{s.Hidden, s.Layers, s.Heads, s.KVHeads, s.HeadSize, s.MLP, s.Vocabulary} {
		if n < 1 || n > maxDimension {
			return Demand{}, fmt.Errorf("%s: a size is %d, want 1 to %d", path, n, maxDimension)
		}
	}
	return newDemand(&s, work), nil
}

func newDemand(s *shapeFile, work Work) Demand {
	n := uint64(s.parameters())
	d := Demand{Parameters: n}
	const half, moreGradient = 2, 1 // bytes of a bfloat16; the gradients of a pass are summed in float32
	perGPU, perHost, perCPU := uint64(half), uint64(0), uint64(wideBytes)
	if work.Trains && work.Adapter {
		work.Reference = true
	} else if work.Trains {
		perGPU += wideBytes + moreGradient*half
		perCPU += wideBytes + moreGradient*wideBytes
		switch work.OptimizerState {
		case "cpu":
			perHost += wideBytes + momentBytes
			perCPU += momentBytes
		case "8bit":
			perGPU += wideBytes + momentBytes/4
			perCPU += momentBytes / 4
		default:
			perGPU += wideBytes + momentBytes
			perCPU += momentBytes
		}
	}
	if work.Trains && work.Reference {
		perCPU += wideBytes
		if work.ReferenceOn == "cpu" {
			perHost += half
		} else {
			perGPU += half
		}
	}
	if work.GPUs > 1 && work.Trains && !work.Adapter {
		// The first GPU has all weights for sampling. The optimizer keeps no float32 weights beside the shards, which
		// are on the GPU.
		perHost, perGPU = min(perHost, momentBytes), perGPU+perHost-min(perHost, momentBytes)
		d.OnGPU, perGPU = n*(perGPU-half)/uint64(work.GPUs), half
	}
	d.OnGPU, d.BesideGPU, d.OnCPU = d.OnGPU+n*perGPU+contextBytes, n*perHost, n*perCPU
	if work.Samples {
		token := uint64(2 * s.Layers * s.KVHeads * s.HeadSize)
		one := token * uint64(promptTokens+work.Tokens)
		if d.GPUShare = work.VLLMMemory; d.GPUShare == 0 {
			d.OnGPU += half * one
		}
		d.OnCPU += wideBytes * one
		d.Cache = half * token * uint64(max(1, work.Together)*(promptTokens+work.Tokens))
	}
	return d
}

// parameters returns the number of weights.
func (s *shapeFile) parameters() int {
	query, keys := s.Heads*s.HeadSize, 2*s.KVHeads*s.HeadSize
	layer := s.Hidden*(2*query+keys+3*s.MLP) + 2*s.Hidden
	name := ""
	if len(s.Architectures) > 0 {
		name = s.Architectures[0]
	}
	qwen2 := name == "Qwen2ForCausalLM"
	if qwen2 || s.Bias {
		layer += query + keys
	}
	if s.Bias && !qwen2 {
		layer += s.Hidden
	}
	if name == "Qwen3ForCausalLM" {
		layer += 2 * s.HeadSize
	}
	embeddings := 2
	if s.Tied {
		embeddings = 1
	}
	return s.Layers*layer + embeddings*s.Vocabulary*s.Hidden + s.Hidden
}
