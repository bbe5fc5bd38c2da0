package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	maxTrainerBytes = 16 << 20
	maxSumsBytes    = 1 << 20
)

// seal adds trainer.json and SHA256SUMS, in the format of sha256sum, to a
// directory and flushes it to disk. It sets r.WeightsSHA256.
func seal(ctx context.Context, r *Record, dir string) error {
	var err error
	if r.WeightsSHA256, err = fileSHA256(ctx, filepath.Join(dir, weightsFile)); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, trainerFile), append(raw, '\n'), 0o644); err != nil {
		return err
	}
	var sums strings.Builder
	var paths []string
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		paths = append(paths, path)
		if e.IsDir() {
			return nil
		}
		sum, err := fileSHA256(ctx, path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, name)
		return nil
	})
	if err != nil {
		return err
	}
	file := filepath.Join(dir, sumsFile)
	if err := os.WriteFile(file, []byte(sums.String()), 0o644); err != nil {
		return err
	}
	for _, path := range append(paths, file, dir) {
		if err := syncPath(path); err != nil {
			return err
		}
	}
	return nil
}

// Read compares every file of a version with SHA256SUMS and returns its
// trainer.json.
func (f Folder) Read(ctx context.Context, version int) (*Record, error) {
	dir := f.Dir(version)
	if err := verify(ctx, dir); err != nil {
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
	return &r, nil
}

func verify(ctx context.Context, dir string) error {
	raw, err := readLimited(filepath.Join(dir, sumsFile), maxSumsBytes)
	if err != nil {
		return corrupt(dir, sumsFile, "cannot be read: "+err.Error())
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		want, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || len(want) != 2*sha256.Size || !filepath.IsLocal(name) {
			return corrupt(dir, sumsFile, "is malformed")
		}
		have, err := fileSHA256(ctx, filepath.Join(dir, name))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return corrupt(dir, name, "cannot be read: "+err.Error())
		}
		if have != want {
			return corrupt(dir, name, fmt.Sprintf("has SHA-256 %.12s..., but %s says %.12s...", have, sumsFile, want))
		}
		listed[name] = true
	}
	for _, name := range []string{weightsFile, trainerFile} {
		if !listed[name] {
			return corrupt(dir, sumsFile, "does not list "+name)
		}
	}
	return nil
}

func corrupt(dir, file, reason string) error {
	return &Error{Dir: dir, File: file, Reason: reason,
		Remedy: "delete directory " + dir + " to continue from the checkpoint before it"}
}
