//go:build linux || darwin

package badgerdir

import (
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Free returns the bytes on dir's file system that this process can use.
func Free(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}

// Usage returns the bytes of the disk that the files in dir take. Files with holes
// take less than their size.
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
