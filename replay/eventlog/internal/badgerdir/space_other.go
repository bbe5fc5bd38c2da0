//go:build !linux && !darwin

package badgerdir

import "math"

// Free is unknown on this system: a full disk shows as an error of the store.
func Free(string) (uint64, error) { return math.MaxUint64, nil }

// Usage is unknown on this system.
func Usage(string) uint64 { return 0 }
