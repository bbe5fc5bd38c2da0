package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"codea1/events/files"
)

// fileSHA256 returns the SHA-256 of a file in hex. It stops when ctx ends.
func fileSHA256(ctx context.Context, path string) (sum string, err error) {
	f, err := files.Open(path)
	if named := (*fs.PathError)(nil); err != nil && !errors.As(err, &named) { // no regular file
		err = &fs.PathError{Op: "open", Path: path, Err: err}
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	const chunkBytes = 8 << 20
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if _, err := io.CopyN(h, f, chunkBytes); errors.Is(err, io.EOF) {
			return hex.EncodeToString(h.Sum(nil)), nil
		} else if err != nil {
			return "", err
		}
	}
}

// fileSums returns the SHA-256 of files of a directory by their names.
func fileSums(ctx context.Context, dir string, names []string) (map[string]string, error) {
	var mu sync.Mutex
	sums := make(map[string]string, len(names))
	err := eachFile(names, func(name string) error {
		sum, err := fileSHA256(ctx, filepath.Join(dir, name))
		mu.Lock()
		defer mu.Unlock()
		sums[name] = sum
		return err
	})
	return sums, err
}

// eachFile calls do with each file, with up to 16 at a time, as there are cores: a few
// of them have most of the bytes.
func eachFile(names []string, do func(name string) error) error {
	var g errgroup.Group
	g.SetLimit(min(max(runtime.GOMAXPROCS(0), 2), 16))
	for _, name := range names {
		g.Go(func() error { return do(name) })
	}
	return g.Wait()
}

func readLimited(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, fmt.Errorf("%d bytes, over the limit of %d", info.Size(), most)
	}
	return os.ReadFile(path)
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
