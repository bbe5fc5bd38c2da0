//go:build linux || darwin

package badgerdir

import (
	"os"
	"path/filepath"
	"syscall"
)

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
