package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codea1/events"
)

const (
	weightsFile = "model.safetensors"
	trainerFile = "trainer.json"
	sumsFile    = "SHA256SUMS"

	temporaryPrefix = ".tmp-"      // a directory that is written or deleted
	replacedPrefix  = ".replaced-" // a version during its replacement
)

// Folder is the folder of one role's checkpoints in one run.
type Folder struct {
	Path string
	Run  string
	Role events.Role
}

func versionName(version int) string { return fmt.Sprintf("v%06d", version) }

func parseVersion(name string) (int, bool) {
	var version int
	if _, err := fmt.Sscanf(name, "v%d", &version); err != nil || versionName(version) != name {
		return 0, false
	}
	return version, true
}

// Dir returns the directory of a version.
func (f Folder) Dir(version int) string { return filepath.Join(f.Path, versionName(version)) }

func (f Folder) temporary(version int) string { return temporaryName(f.Dir(version)) }

// Versions returns the complete versions in ascending order. A missing folder
// has none.
func (f Folder) Versions() ([]int, error) {
	entries, err := os.ReadDir(f.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	var versions []int
	for _, e := range entries {
		v, ok := parseVersion(strings.TrimPrefix(e.Name(), replacedPrefix))
		if ok && v > 0 && e.IsDir() {
			versions = append(versions, v)
		}
	}
	slices.Sort(versions)
	return slices.Compact(versions), nil
}

// Open creates the folder if it is missing, removes the partial directories of
// a killed trainer and returns the complete versions in ascending order. Only
// the trainer of the folder may call it.
func (f Folder) Open() ([]int, error) {
	if err := os.MkdirAll(f.Path, 0o755); err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), temporaryPrefix) {
			if err := os.RemoveAll(filepath.Join(f.Path, e.Name())); err != nil {
				return nil, fmt.Errorf("checkpoints: remove a partial checkpoint: %w", err)
			}
		}
		if v, ok := parseVersion(strings.TrimPrefix(e.Name(), replacedPrefix)); ok {
			if err := f.recoverReplaced(v); err != nil {
				return nil, err
			}
		}
	}
	return f.Versions()
}

// Write creates the checkpoint of r.Version: save fills the directory with the
// engine's files, Write adds trainer.json and SHA256SUMS, flushes all of it to
// disk and renames the directory. It sets r.WeightsSHA256 and r.FilesSHA256.
func (f Folder) Write(ctx context.Context, r *Record, save func(dir string) error) error {
	return create(f.temporary(r.Version), f.Dir(r.Version), os.Rename, func(dir string) error {
		if err := save(dir); err != nil {
			return err
		}
		return seal(ctx, r, dir)
	})
}

// create fills a temporary directory and moves it to dir.
func create(temporary, dir string, move func(from, to string) error, fill func(dir string) error) error {
	err := errors.Join(os.RemoveAll(temporary), os.MkdirAll(temporary, 0o755))
	if err == nil {
		err = fill(temporary)
	}
	if err == nil {
		err = move(temporary, dir)
	}
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", dir, errors.Join(err, os.RemoveAll(temporary)))
	}
	return syncPath(filepath.Dir(dir))
}

// Remove deletes a version.
func (f Folder) Remove(version int) error {
	if err := f.recoverReplaced(version); err != nil {
		return err
	}
	// A partly deleted directory must not have a version's name.
	temporary := f.temporary(version)
	err := os.Rename(f.Dir(version), temporary)
	if err == nil {
		err = os.RemoveAll(temporary)
	}
	if err != nil {
		return fmt.Errorf("checkpoints: remove version %d: %w", version, err)
	}
	return nil
}

// Retain deletes old versions. It keeps the newest keepLast versions and, if
// keepEvery is above 0, the multiples of keepEvery.
func (f Folder) Retain(keepLast, keepEvery int) error {
	versions, err := f.Open()
	if err != nil {
		return err
	}
	for _, v := range expired(versions, keepLast, keepEvery) {
		if err := f.Remove(v); err != nil {
			return err
		}
	}
	return nil
}
