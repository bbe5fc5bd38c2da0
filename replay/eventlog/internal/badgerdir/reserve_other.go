//go:build !linux

package badgerdir

// Reserve does nothing on this system.
func Reserve(string, int64) (release func() error, err error) {
	return func() error { return nil }, nil
}
