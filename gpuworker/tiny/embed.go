package tiny

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed checkpoints
var shipped embed.FS

// Checkpoint returns a checkpoint that ships with the program, by the name of
// its folder in checkpoints/, for OpenFS.
func Checkpoint(name string) (fs.FS, error) {
	if _, err := fs.Stat(shipped, "checkpoints/"+name+"/"+configFile); err != nil {
		return nil, fmt.Errorf("no checkpoint %q is shipped: %w", name, err)
	}
	return fs.Sub(shipped, "checkpoints/"+name)
}

// WriteCheckpoint copies a checkpoint, such as one that ships, into dir, which
// exists and is empty.
func WriteCheckpoint(fsys fs.FS, dir string) error {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		text, err := fs.ReadFile(fsys, entry.Name())
		if err != nil {
			return err
		}
		if err := writeText(dir, entry.Name(), text); err != nil {
			return err
		}
	}
	return nil
}
