package gpuworker

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

// CheckpointURI returns the file URI of a checkpoint directory, made absolute.
func CheckpointURI(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	return (&url.URL{Scheme: "file", Path: abs}).String(), nil
}

// CheckpointDir is the inverse of CheckpointURI. Only file URIs of this machine
// name a directory.
func CheckpointDir(uri string) (string, error) {
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
		return "", fmt.Errorf("checkpoint URI %q: holds more than a path", uri)
	case !filepath.IsAbs(u.Path) || filepath.Clean(u.Path) != u.Path:
		return "", fmt.Errorf("checkpoint URI %q: want a clean absolute path", uri)
	}
	return u.Path, nil
}

// LocateCheckpoint returns the directory that a URI names. Where there is
// nothing, as after a run directory was moved or a fork's origin is gone, it is
// the directory of the same name in folder, if that has one (folder may be
// empty for none): whoever loads it compares its SHA-256 with the event's.
func LocateCheckpoint(uri, folder string) (string, error) {
	dir, err := CheckpointDir(uri)
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

// DescribeCheckpoint names a checkpoint directory as events do: its file URI
// and the SHA-256 of its model.safetensors.
func DescribeCheckpoint(ctx context.Context, dir string) (events.Checkpoint, error) {
	uri, err := CheckpointURI(dir)
	if err != nil {
		return events.Checkpoint{}, err
	}
	sum, err := fileSHA256(ctx, filepath.Join(dir, weightsFile))
	if err != nil {
		return events.Checkpoint{}, fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	return events.Checkpoint{URI: uri, SHA256: sum}, nil
}
