//go:build !amd64 && !arm64

package kernel

// vectorPaths lists the assembly paths this machine can run: none are written
// for its architecture.
func vectorPaths() []*path { return nil }
