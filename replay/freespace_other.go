//go:build !linux && !darwin

package replay

import "math"

// freeBytes cannot tell here; the store's own error has to do.
func freeBytes(string) (uint64, error) { return math.MaxUint64, nil }

// diskUsage cannot tell here.
func diskUsage(string) uint64 { return 0 }
