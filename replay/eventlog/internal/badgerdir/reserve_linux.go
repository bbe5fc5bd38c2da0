package badgerdir

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Reserve takes so much of dir's file system that release gives it back,
// whoever else fills it meanwhile. The file has no name: it goes with the
// process, however that ends. A file system that cannot set space aside gives
// nothing to release.
func Reserve(dir string, bytes int64) (release func() error, err error) {
	file, err := os.CreateTemp(dir, ".log-reserve-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	err = unix.Fallocate(int(file.Fd()), 0, 0, bytes)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return func() error { return nil }, file.Close()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file.Close, nil
}
