package tiny

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"codea1/events"
)

// CopyStart copies the checkpoint that a role's model starts from into dir,
// unless dir exists. from is a checkpoint directory, or empty for the embedded
// checkpoint of the role. A run trains from the copy, so a later change of the
// original does not change the run.
func CopyStart(role events.Role, from, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	source, err := startFiles(role, from)
	if err != nil {
		return err
	}
	// The rename makes the copy whole or absent after a kill.
	partial := dir + ".partial"
	if err := errors.Join(os.RemoveAll(partial), os.MkdirAll(partial, 0o755)); err != nil {
		return fmt.Errorf("starting checkpoint: %w", err)
	}
	if err := WriteCheckpoint(source, partial); err != nil {
		return fmt.Errorf("starting checkpoint %s: %w", from, err)
	}
	if err := os.Rename(partial, dir); err != nil {
		return fmt.Errorf("starting checkpoint: %w", err)
	}
	return nil
}

// startFiles returns the files of a checkpoint after a test that the engine can
// open it.
func startFiles(role events.Role, from string) (fs.FS, error) {
	if from == "" {
		return Checkpoint(string(role))
	}
	engine, err := Open(from)
	if err != nil {
		return nil, fmt.Errorf("--%s-model: %w", role, err)
	}
	return os.DirFS(from), engine.Close()
}
