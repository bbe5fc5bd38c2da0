package tiny

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed checkpoints
var shipped embed.FS

// Checkpoint returns an embedded checkpoint by the name of its folder in
// checkpoints/, for OpenFS.
func Checkpoint(name string) (fs.FS, error) {
	if _, err := fs.Stat(shipped, "checkpoints/"+name+"/"+configFile); err != nil {
		return nil, fmt.Errorf("no embedded checkpoint %q: %w", name, err)
	}
	return fs.Sub(shipped, "checkpoints/"+name)
}
