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
	"strings"
)

// A large model is in shards, as Hugging Face's files are: the index names a file for each
// tensor.
const (
	weightsIndex  = "model.safetensors.index.json"
	tensorsSuffix = ".safetensors" // of weights and of an optimizer's state
)

// isWeights reports whether a file name may be that of weights. An index may give shards
// any names.
func isWeights(name string) bool {
	return name == weightsIndex || strings.HasSuffix(name, tensorsSuffix) && !trainerOnly(name) && path.Base(name) == name
}

// weightsSum returns the sum by which events name weights, from the sums of the
// files of a checkpoint: that of model.safetensors, or the SHA-256 of the lines in
// SHA256SUMS of the index and the files that it can name. It returns "" if there are no
// weights. With an index, model.safetensors is one of the lines: programs differ in the
// one that they load.
func weightsSum(sums map[string]string) string {
	if sums[weightsIndex] == "" {
		return sums[weightsFile]
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if isWeights(name) {
			_, _ = fmt.Fprintf(h, "%s  %s\n", sums[name], name) // never fails
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// filesSum returns the sum by which events name the files of a checkpoint, from their
// sums: the SHA-256 of their lines in SHA256SUMS. trainer.json is left out: it has this
// sum, and a fork writes it again.
func filesSum(sums map[string]string) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if name != trainerFile {
			_, _ = fmt.Fprintf(h, "%s  %s\n", sums[name], filepath.ToSlash(name)) // never fails
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// sumsIn computes the sums of the files in a directory, except SHA256SUMS.
func sumsIn(ctx context.Context, dir string) (map[string]string, error) {
	var names []string
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if name != sumsFile {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return fileSums(ctx, dir, names)
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
