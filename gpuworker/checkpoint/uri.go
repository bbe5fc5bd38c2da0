package checkpoint

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"

	"codea1/events"
)

// URI returns the file URI of a checkpoint directory, made absolute.
func URI(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	return (&url.URL{Scheme: "file", Path: abs}).String(), nil
}

// Find returns the directory of a version that an event names, and checks the
// SHA-256 of its weights. It only returns a directory of the folder: an event
// may come from every login that can publish it.
//
// Machines may mount a run directory at different paths, and it may be moved
// after the event was published. The URI is therefore not used: it ends like
// the path of the version, or Message.Admit has refused the event. The error is
// ErrForeign if a symbolic link leads out of the folder, and fs.ErrNotExist if
// the folder lacks the version.
func (f Folder) Find(ctx context.Context, version int, named events.Checkpoint) (string, error) {
	dir := f.Dir(version)
	sum, err := weightsIn(ctx, dir, f.holds)
	if err != nil {
		return "", err
	}
	if sum != named.SHA256 {
		return "", &Error{Dir: dir, File: weightsFile,
			Reason: fmt.Sprintf("has SHA-256 %.12s..., but policy.updated says %.12s...", sum, named.SHA256),
			Remedy: "delete directory " + dir + " so that the trainer makes it again"}
	}
	return dir, nil
}

// holds checks that a file is in the folder after symbolic links are resolved.
func (f Folder) holds(file string) error {
	root, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		return err
	}
	resolved, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(resolved, root+string(filepath.Separator)) {
		return fmt.Errorf("%w: %s is a symbolic link to %s", ErrForeign, file, resolved)
	}
	return nil
}

// Describe returns the file URI of a checkpoint directory and the SHA-256 of
// its weights and of its files, as events name them.
func Describe(ctx context.Context, dir string) (events.Checkpoint, error) {
	uri, err := URI(dir)
	if err != nil {
		return events.Checkpoint{}, err
	}
	sums, err := sumsIn(ctx, dir)
	if err == nil && weightsSum(sums) == "" {
		err = fmt.Errorf("%s: %w", filepath.Join(dir, weightsFile), fs.ErrNotExist)
	}
	if err != nil {
		return events.Checkpoint{}, fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	return events.Checkpoint{URI: uri, SHA256: weightsSum(sums), FilesSHA256: filesSum(sums)}, nil
}
