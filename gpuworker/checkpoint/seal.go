package checkpoint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	maxTrainerBytes = 16 << 20
	maxSumsBytes    = 1 << 20
)

// seal adds trainer.json and SHA256SUMS, in the format of sha256sum, to a
// directory and flushes it to disk. It sets r.WeightsSHA256 and r.FilesSHA256. The engine may have
// left a SHA256SUMS with the sums that it computed while it wrote.
func seal(ctx context.Context, r *Record, dir string) error {
	known, err := engineSums(dir)
	if err != nil {
		return err
	}
	var names, paths []string // of the files without a sum; of all files and directories
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		paths = append(paths, path)
		if e.IsDir() {
			return nil
		}
		name, err := filepath.Rel(dir, path)
		if known[name] == "" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	// The disk writes while the sums are computed. Both take most of the time of a
	// version.
	flushing := make(chan error, 1)
	go func() { flushing <- eachFile(paths, syncPath) }()
	sums, err := fileSums(ctx, dir, names)
	if err := errors.Join(err, <-flushing); err != nil {
		return err
	}
	maps.Copy(sums, known)
	r.WeightsSHA256, r.FilesSHA256 = weightsSum(sums), filesSum(sums)
	if r.WeightsSHA256 == "" {
		return fmt.Errorf("%s: %w", filepath.Join(dir, weightsFile), fs.ErrNotExist)
	}
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	raw = append(raw, '\n')
	sums[trainerFile] = fmt.Sprintf("%x", sha256.Sum256(raw))
	if err := writeFile(filepath.Join(dir, trainerFile), io.NopCloser(bytes.NewReader(raw))); err != nil {
		return err
	}
	text, err := sumsText(dir, sums)
	if err == nil {
		err = writeFile(filepath.Join(dir, sumsFile), io.NopCloser(bytes.NewReader(text)))
	}
	return errors.Join(err, syncPath(dir))
}

// engineSums removes the SHA256SUMS that an engine left, and returns its sums of the
// files that have the size beside their sum.
func engineSums(dir string) (map[string]string, error) {
	text, err := readLimited(filepath.Join(dir, sumsFile), maxSumsBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, corrupt(dir, sumsFile, "cannot be read: "+err.Error())
	}
	sums, err := parseSums(dir, text)
	err = errors.Join(err, os.Remove(filepath.Join(dir, sumsFile)))
	sizes := parseSizes(text)
	maps.DeleteFunc(sums, func(name, _ string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		size, listed := sizes[name]
		return err != nil || !listed || info.Size() != size
	})
	return sums, err
}

// sizeLine is a line of SHA256SUMS, which sha256sum ignores: the bytes of a file.
const sizeLine = "# %d bytes: %s\n"

// sumsText returns the content of SHA256SUMS for files of a directory.
func sumsText(dir string, sums map[string]string) ([]byte, error) {
	var list, sizes []byte
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		list = fmt.Appendf(list, "%s  %s\n", sums[name], name)
		sizes = fmt.Appendf(sizes, sizeLine, info.Size(), name)
	}
	return append(list, sizes...), nil
}

// parseSizes returns the bytes of the files in a SHA256SUMS. Those of earlier builds
// have none.
func parseSizes(text []byte) map[string]int64 {
	sizes := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		number, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " bytes: ")
		if n, err := strconv.ParseUint(strings.TrimPrefix(number, "# "), 10, 63); ok && err == nil {
			sizes[name] = int64(n)
		}
	}
	return sizes
}

// parseSums returns the sums in the SHA256SUMS of a directory by the names of their
// files.
func parseSums(dir string, text []byte) (map[string]string, error) {
	listed := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		want, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || len(want) != 2*sha256.Size || !filepath.IsLocal(name) {
			return nil, corrupt(dir, sumsFile, "is malformed")
		}
		listed[name] = want
	}
	return listed, nil
}

// Read compares every file of a version with SHA256SUMS and returns its
// trainer.json.
func (f Folder) Read(ctx context.Context, version int) (*Record, error) {
	dir := f.Dir(version)
	listed, err := verify(ctx, dir)
	if err != nil {
		return nil, err
	}
	raw, err := readLimited(filepath.Join(dir, trainerFile), maxTrainerBytes)
	if err != nil {
		return nil, corrupt(dir, trainerFile, "cannot be read: "+err.Error())
	}
	var r Record
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, corrupt(dir, trainerFile, "is not valid JSON: "+err.Error())
	}
	if r.Format != Format {
		return nil, fmt.Errorf("checkpoint %s: %s has format %d, this build supports %d", dir, trainerFile, r.Format, Format)
	}
	if r.Run != f.Run || r.Role != f.Role || r.Version != version || r.Step != version {
		return nil, fmt.Errorf("checkpoint %s: %s belongs to run %q, role %q, version %d; want run %q, role %q, version %d",
			dir, trainerFile, r.Run, r.Role, r.Version, f.Run, f.Role, version)
	}
	if r.FilesSHA256 != "" && r.FilesSHA256 != filesSum(listed) {
		return nil, corrupt(dir, trainerFile, "names other files than "+sumsFile)
	}
	if weights := weightsSum(listed); r.WeightsSHA256 != weights {
		return nil, corrupt(dir, trainerFile, fmt.Sprintf("says that the weights have SHA-256 %.12s..., but %s says %.12s...", r.WeightsSHA256, sumsFile, weights))
	}
	return &r, nil
}

// verify compares the files of a version with SHA256SUMS and returns their sums. It
// refuses tensors that are not listed, because an engine may load them.
func verify(ctx context.Context, dir string) (listed map[string]string, err error) {
	raw, err := readLimited(filepath.Join(dir, sumsFile), maxSumsBytes)
	if err != nil {
		return nil, corrupt(dir, sumsFile, "cannot be read: "+err.Error())
	}
	listed, err = parseSums(dir, raw)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if (e.Name() == weightsIndex || strings.HasSuffix(e.Name(), tensorsSuffix)) && listed[e.Name()] == "" {
			return nil, corrupt(dir, e.Name(), "is not listed in "+sumsFile)
		}
	}
	for name, sum := range map[string]string{weightsFile: weightsSum(listed), trainerFile: listed[trainerFile]} {
		if sum == "" {
			return nil, corrupt(dir, sumsFile, "does not list "+name)
		}
	}
	names := slices.Sorted(maps.Keys(listed))
	have, err := fileSums(ctx, dir, names)
	var unreadable *fs.PathError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &unreadable):
		name, _ := filepath.Rel(dir, unreadable.Path)
		return nil, corrupt(dir, name, "cannot be read: "+err.Error())
	case err != nil:
		return nil, err
	}
	for _, name := range names {
		if have[name] != listed[name] {
			return nil, corrupt(dir, name, fmt.Sprintf("has SHA-256 %.12s..., but %s says %.12s...", have[name], sumsFile, listed[name]))
		}
	}
	return listed, nil
}

func corrupt(dir, file, reason string) error {
	return &Error{Dir: dir, File: file, Reason: reason,
		Remedy: "delete directory " + dir + " to continue from the checkpoint before it"}
}
