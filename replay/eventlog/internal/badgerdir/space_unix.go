//go:build linux || darwin

package badgerdir

import (
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Free returns the space left to this process on dir's file system.
func Free(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}

// Usage returns how much of the disk the files in a directory take: less
// than their sizes add up to, where they have holes.
func Usage(dir string) (bytes uint64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil {
			bytes += 512 * uint64(info.Sys().(*syscall.Stat_t).Blocks)
		}
	}
	return bytes
}
