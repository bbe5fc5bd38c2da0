//go:build !linux && !darwin

package badgerdir

import "math"

// Free cannot tell here; the store's own error has to do.
func Free(string) (uint64, error) { return math.MaxUint64, nil }

// Usage cannot tell here.
func Usage(string) uint64 { return 0 }
