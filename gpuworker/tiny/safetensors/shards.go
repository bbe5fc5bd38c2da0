package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"codea1/events/files"
)

// The files of a model.
const (
	ModelFile = "model.safetensors"            // a model in one file
	IndexFile = "model.safetensors.index.json" // names the shard of every tensor
)

// maxIndexBytes bounds an index.
const maxIndexBytes = 64 << 20

// ReadModel reads model.safetensors or, if it does not exist, the shards that
// model.safetensors.index.json lists. The index must name the shard of every
// tensor, and no other.
func ReadModel(fsys fs.FS, dest Destination) error {
	_, err := ReadFile(fsys, ModelFile, dest)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	index, indexErr := readIndex(fsys)
	if errors.Is(indexErr, fs.ErrNotExist) {
		return err // without an index, model.safetensors is the missing file
	}
	if indexErr != nil {
		return fmt.Errorf("%s: %w", IndexFile, indexErr)
	}
	left := maps.Clone(index)
	for _, shard := range slices.Compact(slices.Sorted(maps.Values(index))) {
		_, err := ReadFile(fsys, shard, func(t Tensor) ([]float32, error) {
			switch listed, ok := index[t.Name]; {
			case !ok:
				return nil, fmt.Errorf("tensor %q is not in %s", t.Name, IndexFile)
			case listed != shard:
				return nil, fmt.Errorf("tensor %q is in %s according to %s", t.Name, listed, IndexFile)
			}
			delete(left, t.Name)
			return dest(t)
		})
		if err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		return fmt.Errorf("%s: %w: tensor %q is missing, which %s lists (%d in all)", left[name], ErrCorrupt, name, IndexFile, len(left))
	}
	return nil
}

// readIndex returns the shard of every tensor. A shard is a file beside the index.
func readIndex(fsys fs.FS) (map[string]string, error) {
	f, err := files.OpenFS(fsys, IndexFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.NewDecoder(io.LimitReader(f, maxIndexBytes)).Decode(&index); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if len(index.WeightMap) == 0 {
		return nil, fmt.Errorf("%w: its weight_map lists no tensor", ErrCorrupt)
	}
	for _, name := range slices.Sorted(maps.Keys(index.WeightMap)) {
		if shard := index.WeightMap[name]; !fs.ValidPath(shard) || shard == "." || strings.ContainsAny(shard, `/\`) {
			return nil, fmt.Errorf("%w: the shard %q of tensor %q is not a file of the directory", ErrCorrupt, shard, name)
		}
	}
	return index.WeightMap, nil
}
