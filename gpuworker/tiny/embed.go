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
