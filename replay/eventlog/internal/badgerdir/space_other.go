//go:build !linux && !darwin

package badgerdir

// Usage is unknown on this system.
func Usage(string) uint64 { return 0 }
