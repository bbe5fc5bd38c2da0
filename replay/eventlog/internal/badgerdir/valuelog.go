package badgerdir

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Badger cuts the newest value log before the first entry with a wrong checksum. The
// values of a batch have no particular order there, so the cut may remove values of
// events that are not the last ones.

// ValueLogEnd returns the path of the newest value log in dir, "" if there is none,
// and its size without the zeros at its end.
func ValueLogEnd(dir string) (path string, end int64, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+ValueLogSuffix)) // sorted: the names have one length
	if err != nil || len(paths) == 0 {
		return "", 0, err
	}
	path = paths[len(paths)-1]
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	end, err = file.Seek(0, io.SeekEnd)
	block := make([]byte, 1<<20)
	for err == nil && end > 0 {
		part := block[:min(end, int64(len(block)))]
		start := end - int64(len(part))
		if _, err = file.ReadAt(part, start); err != nil {
			break
		}
		if data := bytes.TrimRight(part, "\x00"); len(data) > 0 {
			return path, start + int64(len(data)), nil
		}
		end = start
	}
	return path, end, err
}

// isShorter reports whether a file is shorter than size, or does not exist.
func isShorter(path string, size int64) bool {
	info, err := os.Stat(path)
	return err != nil || info.Size() < size
}
