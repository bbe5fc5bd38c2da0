package checkpoint

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// A large model is in shards, as Hugging Face's files are.
const (
	weightsIndex  = "model.safetensors.index.json"
	weightsShards = "model-*-of-*.safetensors"
	tensorsSuffix = ".safetensors" // of weights and of an optimizer's state
)

// isWeights reports whether a file name is that of weights.
func isWeights(name string) bool {
	shard, err := path.Match(weightsShards, name)
	return name == weightsFile || name == weightsIndex || shard && err == nil
}

// weightsSum returns the sum by which events name weights, from the sums of the
// files of a checkpoint: that of model.safetensors, or the SHA-256 of the lines in
// SHA256SUMS of the index and the shards. It returns "" if there are no weights.
func weightsSum(sums map[string]string) string {
	if sum := sums[weightsFile]; sum != "" {
		return sum
	}
	if sums[weightsIndex] == "" {
		return ""
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if isWeights(name) {
			_, _ = fmt.Fprintf(h, "%s  %s\n", sums[name], name) // never fails
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// weightsIn computes the sum of the weights in a directory. check is called with the
// path of each of their files before it is read.
func weightsIn(ctx context.Context, dir string, check func(file string) error) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var names []string
	for _, e := range entries {
		if isWeights(e.Name()) {
			names = append(names, e.Name())
			if err := check(filepath.Join(dir, e.Name())); err != nil {
				return "", err
			}
		}
	}
	sums, err := fileSums(ctx, dir, names)
	if err != nil {
		return "", err
	}
	sum := weightsSum(sums)
	if sum == "" {
		return "", fmt.Errorf("%s: %w", filepath.Join(dir, weightsFile), fs.ErrNotExist)
	}
	return sum, nil
}
