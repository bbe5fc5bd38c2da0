package tiny

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"codea1/events"
	"codea1/gpuworker/checkpoint"
	"codea1/gpuworker/tiny/safetensors"
)

// CopyStart copies the checkpoint that a role's model starts from into dir,
// unless dir exists. from is a checkpoint directory, or empty for the embedded
// checkpoint of the role. A run trains from the copy, so a later change of the
// original does not change the run. A model in shards becomes one file.
func CopyStart(ctx context.Context, role events.Role, from, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if from == "" {
		source, err := Checkpoint(string(role))
		if err != nil {
			return err
		}
		return checkpoint.CreateInitial(source, dir)
	}
	engine, err := Open(from) // a test that the engine can open it
	if err != nil {
		return fmt.Errorf("--%s-model: %w", role, err)
	}
	source := os.DirFS(from)
	if _, missing := fs.Stat(source, weightsFile); errors.Is(missing, fs.ErrNotExist) { // it is in shards
		err = checkpoint.WriteInitial(dir, func(dir string) error { return engine.Export(ctx, dir, safetensors.F32) })
	} else {
		err = checkpoint.CreateInitial(source, dir)
	}
	return errors.Join(err, engine.Close())
}
