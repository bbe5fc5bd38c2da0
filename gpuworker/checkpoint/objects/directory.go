package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// directory is a Store in a directory. os.Root keeps symbolic links in it from
// leading out of it.
type directory struct{ root *os.Root }

// partialSuffix ends the name of a file that is being written.
const partialSuffix = ".partial"

func openDirectory(dir string) (Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("checkpoint store: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("checkpoint store: %w", err)
	}
	return &directory{root}, nil
}

func (d *directory) Close() error { return d.root.Close() }

// Put implements Store.
func (d *directory) Put(ctx context.Context, key, file string) (err error) {
	if err := checkKey(key); err != nil {
		return err
	}
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if stored, err := d.root.Stat(key); err == nil && stored.Size() == info.Size() {
		return nil
	}
	if err := d.root.MkdirAll(path.Dir(key), 0o755); err != nil {
		return err
	}
	// The same name for each try: a killed writer leaves one file, not many.
	partial := key + partialSuffix
	out, err := d.root.Create(partial)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, reader{ctx, in})
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	return d.root.Rename(partial, key)
}

// Get implements Store.
func (d *directory) Get(_ context.Context, key string, offset int64) (io.ReadCloser, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	f, err := d.root.Open(key)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// List implements Store.
func (d *directory) List(ctx context.Context, dir string) ([]string, error) {
	if err := checkKey(dir); err != nil {
		return nil, err
	}
	var keys []string
	err := fs.WalkDir(d.root.FS(), dir, func(key string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && !strings.HasSuffix(key, partialSuffix) {
			keys = append(keys, key)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // nothing is stored, or another process removes it
		}
		return errors.Join(err, ctx.Err())
	})
	return keys, err
}

// Remove implements Store.
func (d *directory) Remove(_ context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	return d.root.RemoveAll(key)
}

// reader ends when its context ends.
type reader struct {
	ctx context.Context
	io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}
