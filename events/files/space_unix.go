//go:build linux || darwin

package files

import "golang.org/x/sys/unix"

// Free returns the bytes on dir's file system that this process can use.
func Free(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}
