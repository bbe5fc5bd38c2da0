package checkpoint

import (
	"errors"
	"fmt"
)

// ErrForeign is returned for a checkpoint outside the folder of its run.
var ErrForeign = errors.New("not a checkpoint of this run")

// Error names the file that makes a checkpoint unusable and the remedy.
type Error struct {
	Dir    string // the checkpoint directory
	File   string // the damaged file, relative to Dir
	Reason string
	Remedy string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("checkpoint %s: file %s %s; %s", e.Dir, e.File, e.Reason, e.Remedy)
}
