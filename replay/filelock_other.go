//go:build !linux && !darwin

package replay

// lockFiles cannot lock here, so nobody is ever alone.
func lockFiles(_ string, alone bool) (unlock func(), ok bool, err error) {
	return func() {}, !alone, nil
}
