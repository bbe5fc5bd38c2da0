//go:build !linux

package badgerdir

// Reserve cannot set space aside here.
func Reserve(string, int64) (release func() error, err error) {
	return func() error { return nil }, nil
}
