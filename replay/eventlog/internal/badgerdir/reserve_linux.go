package badgerdir

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Reserve reserves disk space on dir's file system; release frees it. The file has
// no name, so the space is freed with the process, however it ends. On a file system
// that cannot reserve space it does nothing.
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
