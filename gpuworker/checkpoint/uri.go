package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

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

// DirOf is the inverse of URI. It accepts only file URIs of this machine.
func DirOf(uri string) (string, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return "", fmt.Errorf("checkpoint URI: %w", err)
	}
	switch {
	case u.Scheme != "file":
		return "", fmt.Errorf("checkpoint URI %q: scheme is %q, want file", uri, u.Scheme)
	case u.Host != "" && u.Host != "localhost":
		return "", fmt.Errorf("checkpoint URI %q: names host %q; only local files can be loaded", uri, u.Host)
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return "", fmt.Errorf("checkpoint URI %q: want a path without user, query or fragment", uri)
	case !filepath.IsAbs(u.Path) || filepath.Clean(u.Path) != u.Path:
		return "", fmt.Errorf("checkpoint URI %q: want a clean absolute path", uri)
	}
	return u.Path, nil
}

// Find returns the directory of a checkpoint that an event names and checks
// the SHA-256 of its weights.
//
// A run directory can be moved after the event was published. If the URI's
// directory does not exist, Find takes the directory of the same name in
// folder; an empty folder disables this. The error is fs.ErrNotExist if
// neither exists.
func Find(ctx context.Context, named events.Checkpoint, folder string) (string, error) {
	dir, err := locate(named.URI, folder)
	if err != nil {
		return "", err
	}
	sum, err := fileSHA256(ctx, filepath.Join(dir, weightsFile))
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

func locate(uri, folder string) (string, error) {
	dir, err := DirOf(uri)
	if err != nil || folder == "" {
		return dir, err
	}
	if _, err := os.Stat(filepath.Join(dir, weightsFile)); !errors.Is(err, fs.ErrNotExist) {
		return dir, nil
	}
	moved := filepath.Join(folder, filepath.Base(dir))
	if _, err := os.Stat(filepath.Join(moved, weightsFile)); err != nil {
		return dir, nil
	}
	return moved, nil
}

// Describe returns the file URI of a checkpoint directory and the SHA-256 of
// its weights, as events name them.
func Describe(ctx context.Context, dir string) (events.Checkpoint, error) {
	uri, err := URI(dir)
	if err != nil {
		return events.Checkpoint{}, err
	}
	sum, err := fileSHA256(ctx, filepath.Join(dir, weightsFile))
	if err != nil {
		return events.Checkpoint{}, fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	return events.Checkpoint{URI: uri, SHA256: sum}, nil
}
