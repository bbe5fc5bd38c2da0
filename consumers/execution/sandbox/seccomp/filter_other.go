//go:build !linux || (!amd64 && !arm64)

package seccomp

import (
	"errors"
	"runtime"
)

// Program returns an error: there is no list for this machine.
func Program(bool) ([]byte, error) {
	return nil, errors.New("no seccomp filter for " + runtime.GOOS + "/" + runtime.GOARCH)
}
