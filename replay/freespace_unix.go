//go:build linux || darwin

package replay

import "golang.org/x/sys/unix"

// freeBytes returns the space left to this process on dir's file system.
func freeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}
