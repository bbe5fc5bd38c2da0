package tiny

import (
	"fmt"
	"io/fs"
	"os"

	"codea1/events"
	"codea1/gpuworker/checkpoint"
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
	return checkpoint.CreateInitial(source, dir)
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
