// Package files opens files that users name.
package files

import (
	"fmt"
	"io/fs"
	"os"
)

// Open opens a regular file for reading. It refuses others before it opens them: an
// open pipe waits for a writer, and a device may have no end.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil {
		err = Regular(path, info)
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// OpenFS is Open for a file of fsys.
func OpenFS(fsys fs.FS, name string) (fs.File, error) {
	info, err := fs.Stat(fsys, name)
	if err == nil {
		err = Regular(name, info)
	}
	if err != nil {
		return nil, err
	}
	return fsys.Open(name)
}

// Regular returns an error about a file that is not a regular one. info follows
// symbolic links.
func Regular(name string, info fs.FileInfo) error {
	kind := "a special file"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		kind = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	}
	return fmt.Errorf("%s is %s; want a regular file", name, kind)
}
