//go:build !amd64 && !arm64

package kernel

// vectorPaths returns nothing: this architecture has no assembly.
func vectorPaths() []*path { return nil }
