package enginetest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
)

const (
	weightsFile   = "model.safetensors"
	optimizerFile = "optimizer.safetensors"
)

// Save implements gpuworker.Learner.
func (b *Bigram) Save(_ context.Context, dir string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := writeTensor(filepath.Join(dir, weightsFile), "table", b.weights); err != nil {
		return err
	}
	return writeTensor(filepath.Join(dir, optimizerFile), "state", append(slices.Clone(b.moments), float64(b.steps)))
}

// Load implements gpuworker.Learner.
func (b *Bigram) Load(_ context.Context, dir string) error {
	weights, err := readTensor(filepath.Join(dir, weightsFile), "table", parameters)
	if err != nil {
		return err
	}
	state, err := readTensor(filepath.Join(dir, optimizerFile), "state", 2*parameters+1)
	if errors.Is(err, fs.ErrNotExist) {
		state, err = make([]float64, 2*parameters+1), nil
	}
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.weights, b.moments, b.steps = weights, state[:2*parameters], int(state[2*parameters])
	return nil
}

// LoadReference implements gpuworker.Learner.
func (b *Bigram) LoadReference(_ context.Context, dir string) error {
	weights, err := readTensor(filepath.Join(dir, weightsFile), "table", parameters)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reference = weights
	return nil
}

// LoadWeights implements gpuworker.Sampler.
func (b *Bigram) LoadWeights(_ context.Context, dir string) error {
	weights, err := readTensor(filepath.Join(dir, weightsFile), "table", parameters)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.weights = weights
	return nil
}

// tensorHeader is the header of a safetensors file by tensor name.
type tensorHeader map[string]struct {
	DType   string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

func writeTensor(path, name string, values []float64) error {
	header := fmt.Appendf(nil, `{%q:{"dtype":"F64","shape":[%d],"data_offsets":[0,%d]}}`, name, len(values), 8*len(values))
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	out = append(out, header...)
	for _, v := range values {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
	}
	return os.WriteFile(path, out, 0o644)
}

func readTensor(path, name string, count int) ([]float64, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	bad := func(reason string) error { return fmt.Errorf("%s: %s", path, reason) }
	if len(raw) < 8 || binary.LittleEndian.Uint64(raw) > uint64(len(raw)-8) {
		return nil, bad("is truncated")
	}
	headerEnd := 8 + int(binary.LittleEndian.Uint64(raw))
	var header tensorHeader
	if err := json.Unmarshal(raw[8:headerEnd], &header); err != nil {
		return nil, bad(err.Error())
	}
	tensor, ok := header[name]
	if !ok || tensor.DType != "F64" || !slices.Equal(tensor.Shape, []int{count}) || len(raw)-headerEnd != 8*count {
		return nil, bad(fmt.Sprintf("does not hold %d values of %q", count, name))
	}
	out := make([]float64, count)
	for i := range out {
		out[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[headerEnd+8*i:]))
	}
	return out, nil
}
